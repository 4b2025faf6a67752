"""Layers over steps."""

from __future__ import annotations

import numpy as np

from nethook.drawing.data import Grid
from nethook.drawing.quantities import QUANTITIES
from nethook.page.sections.layers import (
    _explain_grid,
    all_layers,
    first_quantity,
    folds_of,
    heatmap_spec,
    layers,
    offered_quantities,
)
from tests.figures.made import LAYERS
from tests.page.shown import figures_of, html_of, in_report, reading, subject, where


def test_quantities_are_offered_where_the_run_has_something_for_them() -> None:
    offered = offered_quantities(reading())
    assert {"spread", "gradients", "updates", "silent", "ends"} <= set(offered)
    assert first_quantity(offered) == "gradients"
    assert first_quantity(["mean"]) == "mean"
    assert first_quantity([]) == "spread"


def test_what_is_empty_counts_by_the_steps_that_it_stands_for() -> None:
    values = np.array([[1.0, 1.0, np.nan], [1.0, 1.0, np.nan]])
    first, last = np.array([0, 1, 2]), np.array([0, 1, 3])  # the last cell is half of the picture
    grid = Grid(QUANTITIES["spread"], ["a", "b"], first, last, values, values, values)
    assert "Empty cells (50 %) were not measured" in _explain_grid(grid)
    none = np.empty((0, 0))
    nothing = Grid(QUANTITIES["spread"], [], first[:0], last[:0], none, none, none)
    assert _explain_grid(nothing) == QUANTITIES["spread"].explain


def test_a_quantity_can_be_chosen() -> None:
    spread = heatmap_spec(subject(), "spread", where())
    silent = heatmap_spec(subject(), "silent", where())
    assert str(spread["data"][0]) != str(silent["data"][0])
    assert '<option value="spread" selected>' in html_of(layers(subject(), where("?q=spread")))


def test_folds_are_those_of_the_address() -> None:
    rows = [address for address, *_ in LAYERS]
    groups = {"block": [2, 3]}
    assert folds_of(where("?fold=block"), rows, groups) == {"block"}
    assert folds_of(where("?fold=nowhere"), rows, groups) == set()
    assert folds_of(where("?fold="), rows, groups) == set()


def test_a_module_can_be_folded_and_opened() -> None:
    opened = html_of(layers(subject(), where("?q=spread")))
    assert "▾ block (2)" in opened
    assert 'data-value="block" aria-expanded="true"' in opened
    assert 'data-value="" aria-expanded="false"' in html_of(
        layers(subject(), where("?q=spread&fold=block"))
    )


def test_a_report_has_every_quantity_in_tabs() -> None:
    section = all_layers(in_report(), 50)
    made = figures_of(section)
    assert {"heatmap-gradients", "heatmap-spread", "heatmap-silent"} <= set(made)
    assert all(spec["data"][0]["cells"].planes.shape[2] <= 50 for spec in made.values())
    shown = html_of(section, live=False, drawn=made)
    assert shown.count('role="tab"') == shown.count('role="tabpanel"') == len(made)
    assert shown.count('class="pane off"') == len(made) - 1
