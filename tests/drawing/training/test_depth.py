"""Profiles over depth."""

from __future__ import annotations

import numpy as np

from nethook.drawing.data import Quantity
from nethook.drawing.palette import LINES
from nethook.drawing.training.depth import Profile, depth

LOG = Quantity("spread", "Spread", "How far.", "std", "log")
SHARE = Quantity("zeros", "Zeros", "How many.", "of the outputs", "share")
ROWS = ("conv1", "conv2", "fc")


def test_a_line_for_each_profile_with_the_first_layer_at_the_top():
    spec = depth(LOG, ROWS, [Profile("step 0", np.ones(3)), Profile("step 9", np.ones(3) * 2)])
    assert [trace["name"] for trace in spec["data"]] == ["step 0", "step 9"]
    assert spec["data"][1]["x"].tolist() == [2, 2, 2]
    assert list(spec["data"][0]["y"]) == list(ROWS)
    assert spec["layout"]["yaxis"]["autorange"] == "reversed"
    assert list(spec["layout"]["yaxis"]["categoryarray"]) == list(ROWS)
    assert spec["layout"]["showlegend"]
    assert not depth(LOG, ROWS, [Profile("step 0", np.ones(3))])["layout"]["showlegend"]


def test_what_a_logarithm_cannot_show_is_a_gap():
    spec = depth(LOG, ROWS, [Profile("a", np.array([0.0, 10.0, -1.0]))])
    np.testing.assert_array_equal(spec["data"][0]["x"], [np.nan, 10.0, np.nan])
    assert spec["layout"]["xaxis"]["type"] == "log"


def test_shares_begin_at_zero():
    axis = depth(SHARE, ROWS, [Profile("a", np.zeros(3))])["layout"]["xaxis"]
    assert axis["tickformat"] == ".0%"
    assert axis["rangemode"] == "tozero"
    assert axis["title"]["text"] == "of the outputs"


def test_a_threshold_is_drawn_across():
    layout = depth(SHARE, ROWS, [], threshold=0.5)["layout"]
    (line,) = layout["shapes"]
    assert (line["x0"], line["x1"], line["y0"], line["y1"]) == (0.5, 0.5, 0, 1)
    assert "shapes" not in depth(SHARE, ROWS, [])["layout"]


def test_many_profiles_take_the_colours_again():
    profiles = [Profile(f"step {step}", np.ones(3)) for step in range(len(LINES) + 1)]
    data = depth(LOG, ROWS, profiles)["data"]
    assert data[-1]["line"]["color"] == data[0]["line"]["color"] == LINES[0]


def test_names_of_others_are_text():
    spec = depth(SHARE, ("<b>a</b>",), [Profile("<i>x</i>", np.ones(1))])
    assert "<i>" not in spec["data"][0]["name"]
    assert "<i>" not in spec["data"][0]["hovertemplate"]
    assert "<b>" not in spec["data"][0]["y"][0]


def test_no_profiles_are_an_empty_figure():
    assert depth(LOG, (), [])["data"] == []
    assert "tickvals" in depth(LOG, (), [])["layout"]["xaxis"]
