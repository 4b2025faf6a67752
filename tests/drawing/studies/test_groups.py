"""Histograms of groups."""

import numpy as np

from nethook.drawing.rendering.render import figure
from nethook.drawing.stills.still import still
from nethook.drawing.studies.groups import groups


def test_every_number_is_in_a_bin_and_bins_are_shared():
    values = {"a": np.linspace(0, 1, 50), "b": np.linspace(2, 3, 10)}
    spec = groups("t", values, unit="u")
    a, b = spec["data"]
    assert np.array_equal(a["x"], b["x"])
    np.testing.assert_allclose([a["y"][:-1].sum(), b["y"][:-1].sum()], 1)
    assert "<svg" in still(figure(spec).to_plotly_json())
    same = groups("t", {"a": np.ones(3)}, unit="u")["data"][0]
    assert same["y"][:-1].sum() == 1
