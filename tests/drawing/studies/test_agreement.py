"""Estimates against what was measured."""

from __future__ import annotations

import numpy as np

from nethook.drawing.rendering.render import figure
from nethook.drawing.studies.agreement import agreement


def test_points_about_a_diagonal() -> None:
    exact, estimated = np.array([1.0, -2.0, 0.5]), np.array([0.9, -1.0, 0.0])
    drawn = figure(agreement(["<a>", "b", "c"], exact, estimated, first=2))
    diagonal, first, others = drawn.data
    assert list(diagonal.x) == list(diagonal.y) == [-2.0, 1.0]
    assert list(first.x) == [1.0, -2.0]
    assert list(others.y) == [0.0]
    assert "<a>" not in first.text[0]
    assert len(agreement(["a"], exact[:1], estimated[:1])["data"]) == 2
