"""How columns are shown; tests/interp/attention/test_heads.py finds them on real models."""

from __future__ import annotations

from nethook.interp.attention.columns import Projection


def test_columns_are_shown_as_slices() -> None:
    two = Projection("qkv", ((0, 1, 2, 6, 7), (3, 4, 5, 8, 9)))
    assert repr(two) == "qkv [0:3, 6:8, …]"
    assert repr(Projection("q", ((0, 1),))) == "q"
    assert repr(Projection("q", None)) == "q (all columns in every head)"
    many = Projection("q", ((0, 2, 4, 6), (1, 3, 5, 7)))
    assert many.shown() == "[0:1, 2:3, 4:5 …, …]"
