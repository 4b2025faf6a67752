"""Several runs beside each other."""

from __future__ import annotations

from nethook.page.sections.compare import Comparison, compare
from nethook.page.urls import read_place
from tests.page.shown import figures_of, folder, opened, text_of


def shown_for(*names: str):
    ids = "~".join(opened(name).entry.id for name in names)
    return compare(folder(), Comparison(), read_place("/compare", f"?runs={ids}"))


def test_two_runs_are_compared_in_words_and_figures() -> None:
    shown = shown_for("training", "changed")
    assert "They diverge at step 61" in text_of(shown)
    assert [name for name, spec in figures_of(shown).items() if spec and spec["data"]]


def test_one_run_alone_asks_for_another() -> None:
    shown = shown_for("training")
    assert "They diverge" not in text_of(shown)
    assert opened("changed").entry.id in text_of(shown)


def test_a_run_that_cannot_be_read_is_named_and_left_out() -> None:
    shown = text_of(shown_for("training", "changed", "broken"))
    assert "broken (cannot be read)" in shown
    assert "They diverge at step 61" in shown


def test_ids_that_nobody_has_are_left_out() -> None:
    shown = compare(folder(), Comparison(), read_place("/compare", "?runs=nobody~nothing"))
    assert "They diverge" not in text_of(shown)
