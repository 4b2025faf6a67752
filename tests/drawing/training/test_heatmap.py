"""Layers over steps."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.drawing.data import Grid
from nethook.drawing.quantities import QUANTITIES
from nethook.drawing.rendering.render import figure
from nethook.drawing.training.depth import Profile, depth
from nethook.drawing.training.heatmap import heatmap

ROWS = ["conv1", "conv2", "fc"]
FIRST, LAST = np.array([0, 1, 2, 4]), np.array([0, 1, 3, 7])


def grid(values, name="gradients", least=None):
    values = np.asarray(values, dtype=float)
    low = values if least is None else np.asarray(least, dtype=float)
    return Grid(QUANTITIES[name], ROWS, FIRST, LAST, low, values, values)


VALUES = [[1, 10, 100, 1000], [1, 1, 0, np.nan], [2, 2, 2, 2]]


def test_rows_are_in_the_order_given_from_the_top_and_columns_end_where_steps_do():
    made = figure(heatmap(grid(VALUES)))
    assert list(made.data[0].y) == ROWS
    assert made.layout.yaxis.autorange == "reversed"
    np.testing.assert_array_equal(made.data[0].x, [-0.5, 0.5, 1.5, 3.5, 7.5])


def test_colours_are_logarithms_and_hover_has_the_numbers():
    made = figure(heatmap(grid(VALUES)))
    z = np.array(made.data[0].z)
    np.testing.assert_allclose(z[0], [0, 1, 2, 3])
    assert z[1, 2] == 0  # an exact zero has the lowest colour, and is no gap
    assert np.isnan(z[1, 3])
    np.testing.assert_array_equal(np.array(made.data[0].customdata)[..., 0], VALUES)


def test_a_column_of_several_windows_says_least_greatest_and_last():
    made = figure(heatmap(grid(VALUES, least=np.zeros((3, 4)))))
    assert np.array(made.data[0].customdata).shape == (3, 4, 3)
    assert "at most" in made.data[0].hovertemplate
    assert "at least" in made.data[0].hovertemplate


def test_robust_colours_and_a_switch_to_all_of_them():
    values = np.tile(np.linspace(1, 2, 100), (3, 1))
    values[1, 50] = 1e9
    steps = np.arange(100)
    wide = Grid(QUANTITIES["spread"], ROWS, steps, steps, values, values, values)
    made = figure(heatmap(wide))
    assert made.layout.coloraxis.cmax < 0.31
    robust, everything = made.layout.updatemenus[0].buttons
    assert (robust.label, everything.label) == ("robust", "all-time")
    assert everything.args[0]["coloraxis.cmax"] == 9.0
    assert figure(heatmap(wide, all_time=True)).layout.coloraxis.cmax == 9.0


@pytest.mark.parametrize(("least", "greatest"), [(0.03, 0.3), (0.11, 0.9), (2.0, 2.5), (1e-5, 1e5)])
@pytest.mark.parametrize("outlier", [None, 1e9])
def test_the_scale_of_colours_has_two_numbers_or_more_among_those_that_are_used(
    least, greatest, outlier
):
    values = np.tile(np.geomspace(least, greatest, 100), (3, 1))
    if outlier:
        values[1, 50] = outlier
    steps = np.arange(100)
    made = figure(
        heatmap(Grid(QUANTITIES["spread"], ROWS, steps, steps, values, values, values))
    ).layout.coloraxis
    places = list(made.colorbar.tickvals)
    assert places == sorted(places)
    assert sum(made.cmin <= place <= made.cmax for place in places) >= 2
    said = [float(text.replace(",", "").replace("−", "-")) for text in made.colorbar.ticktext]
    np.testing.assert_allclose(np.log10(said), places, atol=1e-3)


@pytest.mark.parametrize("name", QUANTITIES)
def test_every_quantity_is_explained_and_drawn(name):
    made = figure(heatmap(grid(VALUES, name)))
    assert QUANTITIES[name].explain.split(";")[0][:20] in made.layout.title.text
    assert made.layout.coloraxis.cmin < made.layout.coloraxis.cmax
    if QUANTITIES[name].scale == "signed":
        assert made.layout.coloraxis.cmin == -made.layout.coloraxis.cmax


def test_of_signed_numbers_the_one_farther_from_zero_is_the_colour():
    made = figure(heatmap(grid(VALUES, "mean", least=[[-5, -20, 0, 0]] * 3)))
    np.testing.assert_array_equal(np.array(made.data[0].z)[0], [-5, -20, 100, 1000])


def test_names_that_look_like_dates_or_are_equal_stay_names():
    rows = ["2020-01-01", "3", "3"]
    values = np.ones((3, 4))
    odd = Grid(QUANTITIES["spread"], rows, FIRST, LAST, values, values, values)
    made = figure(heatmap(odd))
    assert made.layout.yaxis.type == "category"
    assert list(made.data[0].y) == ["2020-01-01", "3", "3 (2)"]


def test_a_profile_has_a_point_a_layer_and_none_for_a_zero():
    profiles = [Profile("step 0", np.array([1.0, 0.0, 3.0])), Profile("step 9", np.ones(3))]
    made = figure(depth(QUANTITIES["gradients"], ROWS, profiles, threshold=0.5))
    assert len(made.data) == 2
    np.testing.assert_array_equal(made.data[0].x, [1.0, np.nan, 3.0])
    assert made.layout.shapes[0].x0 == 0.5
    assert made.layout.xaxis.type == "log"
