"""Scores with intervals, beside a control."""

import re

import numpy as np

from nethook.drawing.rendering.render import figure
from nethook.drawing.stills.still import still
from nethook.drawing.studies.scores import score_bars


def test_bars_stand_beside_each_other_with_their_intervals():
    spec = score_bars(
        "t", ["a", "b"], np.array([0.9, 0.8]), np.array([0.8, np.nan]), np.array([0.95, np.nan]),
        control=np.array([0.5, 0.4]), baseline=np.array([0.5, 0.5]), unit="accuracy",
    )  # fmt: skip
    np.testing.assert_allclose(spec["data"][0]["error_y"]["array"], [0.05, 0])
    np.testing.assert_allclose(spec["data"][0]["error_y"]["arrayminus"], [0.1, 0])
    picture = still(figure(spec).to_plotly_json())
    lefts = [float(x) for x in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="[\d.]+"', picture)]
    assert len(lefts) == 4
    assert len(set(lefts)) == 4  # none behind another
    assert picture.count('stroke-width="1.4"') == 1  # no line where no interval is known
