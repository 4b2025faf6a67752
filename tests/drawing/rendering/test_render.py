"""From a spec to a figure, and to the bytes of a page."""

from __future__ import annotations

import base64
import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.drawing.data import Cells, Line, Panel
from nethook.drawing.palette import BLUE, ON_DARK
from nethook.drawing.rendering.render import (
    encode_array,
    encode_cells,
    figure,
    payload,
    picture,
    themed,
)
from nethook.drawing.stills.still import still
from nethook.drawing.training.curves import curves
from nethook.errors import MissingLibraryError, OptionError
from nethook.text.escape import script_json
from tests.drawing.codes import decode_codes

shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 6))


def decoded(encoded: dict) -> np.ndarray:
    codes = np.frombuffer(base64.b64decode(encoded["codes"]), np.uint8).reshape(encoded["shape"])
    return decode_codes(codes, encoded["low"], encoded["high"], log=encoded["log"])


@given(shapes, st.booleans(), st.integers(0, 2**31))
def test_codes_keep_extrema_exactly_and_the_rest_within_a_step(shape, log, seed):
    random = np.random.default_rng(seed)
    values = random.lognormal(0, 3, shape) if log else random.normal(0, 100, shape)
    gaps = random.random(shape) < 0.2
    values[gaps] = np.nan
    if log:
        values[random.random(shape) < 0.2] = 0
    encoded = json.loads(script_json(encode_cells(Cells(values, log=log))))
    found = decoded(encoded)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(values))
    there = ~np.isnan(values)
    np.testing.assert_array_equal(found[there] == 0, values[there] == 0) if log else None
    shown = there & (values > 0) if log else there
    if not shown.any():
        return
    a, b = (
        (np.log10(found[shown]), np.log10(values[shown])) if log else (found[shown], values[shown])
    )
    step = (b.max() - b.min()) / 252
    assert np.abs(a - b).max() <= step / 2 + 1e-9
    # The ends are exact: to the last bit where they are kept as they are.
    assert np.isclose(found[shown].max(), values[shown].max(), rtol=1e-12, atol=0)
    assert np.isclose(found[shown].min(), values[shown].min(), rtol=1e-12, atol=0)
    if not log:
        assert found[shown].max() == values[shown].max()
        assert found[shown].min() == values[shown].min()


def test_an_infinite_cell_is_infinite():
    values = np.array([[[1.0, np.inf, 2.0]]])
    np.testing.assert_array_equal(decoded(encode_cells(Cells(values))), values)
    np.testing.assert_array_equal(Cells(values, log=True).colours()[0, 1], np.log10(2.0))


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=16, max_size=40))
def test_arrays_come_back_as_plotly_reads_them(values):
    array = np.array(values)
    encoded = encode_array(array)
    read = np.frombuffer(base64.b64decode(encoded["bdata"]), np.dtype(encoded["dtype"]))
    np.testing.assert_array_equal(read, array)


def test_steps_beyond_float32_keep_every_digit():
    steps = np.arange(20.0) + 2**26
    encoded = encode_array(steps)
    assert encoded["dtype"] == "f8"
    assert encode_array(np.arange(20))["dtype"] == "i4"
    assert encode_array(np.arange(3)) == [0, 1, 2]
    assert encode_array(np.zeros((4, 5)))["shape"] == "4, 5"


def spec():
    return curves([Panel("loss", [Line("a", np.arange(5), np.arange(5.0), colour=BLUE)])])


def test_a_dark_figure_has_brighter_lines_and_the_same_numbers():
    light, dark = figure(spec()), figure(spec(), "dark")
    assert light.data[0].line.color == BLUE
    assert dark.data[0].line.color == ON_DARK[BLUE]
    np.testing.assert_array_equal(light.data[0].y, dark.data[0].y)
    assert dark.layout.template.layout.paper_bgcolor != light.layout.template.layout.paper_bgcolor


def test_only_colours_change_with_the_theme():
    value = {"text": f'{BLUE} <span style="color:{BLUE}">x</span>', "name": BLUE, "color": [BLUE]}
    made = themed(value, "dark")
    assert made["name"] == BLUE
    assert made["text"].startswith(f"{BLUE} ")
    assert f"color:{ON_DARK[BLUE]}" in made["text"]
    assert made["color"] == [ON_DARK[BLUE]]


def test_a_theme_that_is_none_is_refused():
    with pytest.raises(OptionError, match="`theme` must be one of light, dark; got 'blue'"):
        figure(spec(), "blue")


def test_without_plotly_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    monkeypatch.delitem(sys.modules, "nethook.drawing.rendering.plotly_figure", raising=False)
    with pytest.raises(MissingLibraryError, match=r"pip install 'nethook\[ui\]'"):
        figure(spec())


def test_a_payload_is_json_without_the_template():
    text = script_json(payload(spec()))
    assert json.loads(text)["layout"]["height"] > 0
    assert "template" not in json.loads(text)["layout"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_is_that_of_the_figure(theme) -> None:
    cells = Cells(np.array([[[1.0, 10.0], [100.0, np.nan]]]), log=True)
    trace = {"type": "heatmap", "cells": cells, "y": ["a", "b"], "coloraxis": "coloraxis"}
    scale = {"cmin": 0, "cmax": 2, "colorscale": [[0, "#000000"], [1, "#ffffff"]]}
    spec = {"data": [trace], "layout": {"coloraxis": scale, "height": 200}}
    assert picture(spec, theme, 600) == still(figure(spec, theme).to_plotly_json(), 600)


def test_a_picture_is_as_high_as_the_page_draws_the_figure() -> None:
    spec = curves([Panel("loss", [Line("", [0, 1], [2.0, 1.0], colour=BLUE)])])
    low = {**spec, "layout": {k: v for k, v in spec["layout"].items() if k != "height"}}
    assert 'viewBox="0 0 700 300"' in picture(low, width=700)
