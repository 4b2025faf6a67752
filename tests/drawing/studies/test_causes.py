"""Effects as figures: centred on zero, noise drawn as zero, intervals on bars."""

import numpy as np

from nethook.drawing.studies.causes import causes_spec

MEAN = np.array([[0.5, -2.0], [1e-9, np.nan]])


def spec(**given):
    options = {"title": "a <b>", "sites": ["h.0", "h.1"], "cells": ["0", "<1>"], "over": "tokens"}
    return causes_spec(**(options | {"mean": MEAN} | given))


def test_colours_are_centred_on_zero_and_noise_is_zero():
    drawn = spec(floor=1e-6)
    axis = drawn["layout"]["coloraxis"]
    assert (axis["cmin"], axis["cmax"]) == (-2.0, 2.0)
    assert drawn["data"][0]["z"][1, 0] == 0.0
    assert "&lt;" in drawn["layout"]["title"]["text"]
    assert drawn["data"][0]["customdata"][0][1] == ["&lt;1&gt;"]


def test_intervals_are_on_hover_and_on_bars():
    drawn = spec(low=MEAN - 1, high=MEAN + 1)
    assert drawn["data"][0]["customdata"][0][0] == ["0", -0.5, 1.5]
    bars = spec(cells=[""], mean=MEAN[:, :1], low=MEAN[:, :1] - 1, high=MEAN[:, :1] + 2)
    assert bars["data"][0]["error_x"]["array"].tolist() == [2.0, 2.0]
    assert bars["data"][0]["error_x"]["arrayminus"].tolist() == [1.0, 1.0]
    assert "error_x" not in spec(cells=[""], mean=MEAN[:, :1])["data"][0]


def test_pixels_are_pictures_and_nothing_is_still_a_figure():
    drawn = spec(
        sites=["conv"], cells=[str(i) for i in range(6)], mean=np.ones((1, 6)), grid=(2, 3)
    )
    assert np.asarray(drawn["data"][0]["z"]).shape == (2, 3)
    empty = spec(mean=np.zeros((2, 2)))
    assert empty["layout"]["coloraxis"]["cmax"] == 1.0
