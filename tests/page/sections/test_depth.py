"""A profile over depth, beside another run where asked."""

from __future__ import annotations

from nethook.page.sections.depth import depth
from tests.page.shown import figures_of, folder, opened, reading, text_of, where


def figure_of(search: str = "") -> dict:
    shown = depth(folder(), opened(), reading(), where(search))
    (spec,) = (spec for spec in figures_of(shown).values() if spec is not None)
    return spec


def test_a_run_stands_beside_its_start_or_beside_another_run() -> None:
    other = opened("changed").entry.id
    alone, beside = figure_of(), figure_of(f"?with={other}")
    assert [len(spec["data"]) for spec in (alone, beside)] == [2, 2]
    assert not any("changed" in str(trace["name"]) for trace in alone["data"])
    assert any("changed" in str(trace["name"]) for trace in beside["data"])


def test_other_runs_are_offered_and_the_run_itself_is_not() -> None:
    shown = text_of(depth(folder(), opened(), reading(), where()))
    assert opened("changed").entry.id in shown
    assert f'"value": "{opened().entry.id}"' not in shown
