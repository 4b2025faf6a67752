"""A grid of layers by tokens."""

from __future__ import annotations

import numpy as np

from nethook.drawing.rendering.render import figure
from nethook.drawing.studies.token_grid import token_grid


def test_texts_stand_in_the_cells_and_are_escaped() -> None:
    values = np.array([[0.1, 0.5], [0.9, np.nan]])
    spec = token_grid("t", ["h.0", "h.1"], ["<b>", "x"], values, texts=[["a", "<i>"], ["c", "d"]])
    drawn = figure(spec)
    assert drawn.layout.coloraxis.cmin == 0.0
    assert drawn.layout.coloraxis.cmax == 0.9
    assert "<" not in drawn.data[0].text[0][1].replace("&lt;", "")
    assert "<b>" not in drawn.layout.xaxis.ticktext[0]
    assert list(drawn.data[0].y) == ["h.0", "h.1"]


def test_signed_values_have_zero_in_the_middle() -> None:
    spec = token_grid("t", ["a"], ["x", "y"], np.array([[-2.0, 1.0]]), signed=True)
    axis = spec["layout"]["coloraxis"]
    assert (axis["cmin"], axis["cmax"]) == (-2.0, 2.0)
    assert "texttemplate" not in spec["data"][0]
    empty = token_grid("t", ["a"], ["x"], np.array([[np.nan]]), signed=True)
    assert empty["layout"]["coloraxis"]["cmax"] == 1.0
