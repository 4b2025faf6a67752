"""The overview of a run."""

from __future__ import annotations

from nethook.page.sections.overview import (
    curves_spec,
    folds_of,
    heatmap_spec,
    offered_quantities,
    overview,
    verdict_strip,
)
from tests.figures.made import LAYERS
from tests.page.shown import figures_of, opened, reading, text_of, where


def test_quantities_are_offered_where_the_run_has_something_for_them() -> None:
    offered = offered_quantities(reading())
    assert {"spread", "gradients", "updates", "silent", "ends"} <= set(offered)


def test_the_verdict_names_findings_the_worst_first() -> None:
    shown = text_of(verdict_strip(opened(), reading()))
    assert "1 error, 1 warning, 1 note" in shown
    assert shown.index("Most units of block.relu2") < shown.index("Updates are large")


def test_the_view_has_curves_and_a_heatmap() -> None:
    shown = overview(opened(), reading(), where())
    assert all(spec["data"] for spec in figures_of(shown).values() if spec is not None)
    assert len(figures_of(shown)) >= 2
    assert curves_spec(reading())["data"]


def test_a_quantity_can_be_chosen() -> None:
    spread = heatmap_spec(opened(), reading(), "spread", where())
    silent = heatmap_spec(opened(), reading(), "silent", where())
    assert str(spread["data"][0]) != str(silent["data"][0])


def test_folds_are_those_of_the_address() -> None:
    rows = [address for address, *_ in LAYERS]
    groups = {"block": [2, 3]}
    assert folds_of(where("?fold=block"), rows, groups) == {"block"}
    assert folds_of(where("?fold=nowhere"), rows, groups) == set()
    assert folds_of(where("?fold="), rows, groups) == set()
