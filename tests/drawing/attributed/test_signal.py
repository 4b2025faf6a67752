"""Curves below the signal they explain."""

import numpy as np

from nethook.drawing.attributed.signal import signal_spec
from nethook.drawing.rendering.render import figure
from nethook.drawing.stills.still import still


def test_for_and_against():
    values = np.array([1.0, -2.0, 0.5])
    spec = signal_spec("t", np.array([0.0, 1.0, 2.0]), values)
    for_it, against, signal = spec["data"]
    assert np.array_equal(for_it["y"] + against["y"], values)
    assert for_it["y"].min() == 0
    assert against["y"].max() == 0
    assert signal["yaxis"] == "y2"
    assert spec["layout"]["yaxis"]["domain"] == [0.0, 0.48]
    assert "<path" in still(figure(spec).to_plotly_json())


def test_without_the_signal():
    spec = signal_spec("t", None, np.array([1.0, -2.0]))
    assert len(spec["data"]) == 2
    assert "yaxis2" not in spec["layout"]
