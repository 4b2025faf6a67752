"""Figures of scales: from plain data, with gaps where there is no number."""

from __future__ import annotations

import math
import re
import sys

import pytest

from nethook.drawing.rendering.render import figure, picture
from nethook.drawing.scales import scales_over_depth, scales_over_width
from nethook.errors import MissingLibraryError

ROWS = [
    {"address": "a", "forward": 1.0, "backward": math.nan, "expected": 1.0, "cosine": 0.1},
    {"address": "b", "forward": 2.0, "backward": 0.5, "expected": 0.5, "cosine": math.inf},
]


def numbers(values):
    """A number or None for each: NaN is a gap."""
    return [None if math.isnan(value) else value for value in values]


def test_scales_over_depth():
    shown = figure(scales_over_depth({"model": "Net", "rows": ROWS}))
    forward, backward, expected, cosine = shown.data
    assert numbers(forward.y) == [1.0, 2.0]
    assert numbers(backward.y) == [None, 0.5]
    assert numbers(expected.y) == [1.0, 0.5]
    assert numbers(cosine.y) == [0.1, None]
    assert list(forward.customdata) == ["a", "b"]
    assert shown.layout.title.text == "Scales of Net"
    assert shown.layout.yaxis.type == "log"
    assert cosine.yaxis == "y2"
    assert list(shown.layout.xaxis.tickvals) == [1, 2]  # no layer lies between two


def test_scales_over_width():
    rows = [{"address": "a", "forward": [1.0, 2.0]}, {"address": "b", "forward": [1.0, math.nan]}]
    shown = figure(scales_over_width({"widths": [8, 16], "steps": 3, "rows": rows}))
    assert [trace.name for trace in shown.data] == ["a", "b"]
    assert numbers(shown.data[1].y) == [1.0, None]
    assert shown.layout.title.text == "Scales over width after 3 steps"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_bring_a_still_picture_in_the_theme(theme):
    depth = scales_over_depth({"model": "<Net>", "rows": ROWS})
    rows = [{"address": "<b>", "forward": [1.0, 2.0]}, {"address": "c", "forward": [3.0, 4.0]}]
    for spec in (depth, scales_over_width({"widths": [8, 16], "steps": 0, "rows": rows})):
        drawn = picture(spec, theme)
        assert {"light": "#ffffff", "dark": "#171b21"}[theme] in drawn
        assert len(re.findall("<circle", drawn)) >= 4
        assert "<b>" not in drawn
        assert "text/html" in figure(spec, theme)._repr_mimebundle_()


def test_without_plotly_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nethook.drawing.rendering.plotly_figure", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'nethook\[ui\]'"):
        figure(scales_over_depth({"model": "Net", "rows": ROWS}))
