"""Axes of a still picture: where values are, and which ticks."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from nethook.drawing.stills.axes import array_of, axes_of, edges


def axis(letter="x", values=(0.0, 10.0), kind="scatter", **about):
    made = axes_of({f"{letter}axis": about}, [{"type": kind, letter: list(values)}])[letter]
    made.place(100.0, 200.0)
    return made


def test_arrays_as_plotly_keeps_them() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    kept = {"dtype": "f4", "bdata": base64.b64encode(values.tobytes()).decode(), "shape": "2, 3"}
    assert np.array_equal(array_of(kept), values)
    assert array_of(None).size == 0
    assert array_of([1, 2]).tolist() == [1, 2]


def test_a_linear_axis() -> None:
    linear = axis(range=[0, 10])
    assert [linear.at(value) for value in (0, 5, 10)] == [100, 150, 200]
    assert [place for place, _ in linear.ticks()] == [0, 2, 4, 6, 8, 10]
    padded = axis()
    assert padded.at(0) == pytest.approx(100 + 100 * 0.5 / 11)


def test_a_logarithmic_axis() -> None:
    logarithmic = axis(values=(1.0, 1000.0), type="log", range=[0, 3])
    assert [logarithmic.at(value) for value in (1, 10, 1000)] == pytest.approx(
        [100, 133.33, 200], 1e-4
    )
    assert [place for place, _ in logarithmic.ticks()] == [1, 10, 100, 1000]
    assert np.isnan(logarithmic.pixels([0.0, -1.0])).all()


def test_names_stand_in_their_order_and_may_be_reversed() -> None:
    names = axis("y", ["a", "b", "a", "c"], autorange="reversed")
    assert names.names == ["a", "b", "c"]
    assert names.at("a") > names.at("b") > names.at("c")
    assert [said for _, said in names.ticks()] == ["a", "b", "c"]
    listed = axis("y", ["b", "a"], type="category", categoryarray=["a", "b"])
    assert listed.names == ["a", "b"]


def test_ticks_that_are_given_and_percent() -> None:
    given = axis(range=[0, 10], tickvals=[1, 5, 50], ticktext=["one", "five", "out"])
    assert list(given.ticks()) == [(1, "one"), (5, "five")]
    assert "20 %" in dict(axis(range=[0, 1], tickformat=".0%").ticks()).values()


def test_a_part_of_the_paper() -> None:
    half = axis(range=[0, 1], domain=[0.5, 1.0])
    assert (half.at(0), half.at(1)) == (150, 200)


def test_edges_and_middles_of_cells() -> None:
    assert edges(np.array([0.0, 2.0, 4.0]), 2) == (0.0, 4.0)
    assert edges(np.array([1.0, 3.0]), 2) == (0.0, 4.0)
    assert edges(np.array([7.0]), 1) == (6.5, 7.5)
    assert edges(np.array(["a", "b"]), 2) == (-0.5, 1.5)


def test_an_axis_without_a_number() -> None:
    empty = axis(values=())
    assert np.isfinite(empty.at(0.5))
    assert list(axis(values=(np.nan,)).ticks())
