"""Figures of scales: from plain data, with gaps where there is no number."""

from __future__ import annotations

import math
import sys

import pytest

from nethook.drawing.scales import scales_figure, sweep_figure

ROWS = [
    {"address": "a", "forward": 1.0, "backward": math.nan, "expected": 1.0, "cosine": 0.1},
    {"address": "b", "forward": 2.0, "backward": 0.5, "expected": 0.5, "cosine": math.inf},
]


def test_scales_over_depth():
    figure = scales_figure({"model": "Net", "rows": ROWS})
    forward, backward, expected, cosine = figure.data
    assert list(forward.y) == [1.0, 2.0]
    assert list(backward.y) == [None, 0.5]
    assert list(expected.y) == [1.0, 0.5]
    assert list(cosine.y) == [0.1, None]
    assert list(forward.customdata) == ["a", "b"]
    assert figure.layout.title.text == "Scales of Net"
    assert figure.layout.yaxis.type == "log"


def test_scales_over_width():
    rows = [{"address": "a", "forward": [1.0, 2.0]}, {"address": "b", "forward": [1.0, math.nan]}]
    figure = sweep_figure({"widths": [8, 16], "steps": 3, "rows": rows})
    assert [trace.name for trace in figure.data] == ["a", "b"]
    assert list(figure.data[1].y) == [1.0, None]
    assert figure.layout.title.text == "Scales over width after 3 steps"


def test_without_plotly_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ImportError, match=r"pip install 'nethook\[ui\]'"):
        scales_figure({"model": "Net", "rows": ROWS})
