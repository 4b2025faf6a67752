"""A profile over depth, beside another run where asked."""

from __future__ import annotations

from nethook.page.sections.depth import all_depths, depth
from tests.page.shown import figures_of, html_of, in_report, opened, subject, where


def figure_of(beside=None) -> dict:
    (spec,) = figures_of(depth(subject(), where(), [], beside)).values()
    return spec


def test_a_run_stands_beside_its_start_or_beside_another_run() -> None:
    alone, beside = figure_of(), figure_of(subject("changed"))
    assert [len(spec["data"]) for spec in (alone, beside)] == [2, 2]
    assert not any("changed" in str(trace["name"]) for trace in alone["data"])
    assert any("changed" in str(trace["name"]) for trace in beside["data"])


def test_other_runs_are_offered() -> None:
    other = opened("changed").entry
    shown = html_of(depth(subject(), where(), [(other.id, other.name)], None))
    assert f'<option value="{other.id}">changed</option>' in shown
    assert '<option value="" selected>no other run</option>' in shown


def test_the_step_is_that_of_the_address_and_at_most_the_last() -> None:
    assert "step 119" in str(figure_of()["data"])
    (spec,) = figures_of(depth(subject(), where("?step=60"), [], None)).values()
    assert [trace["name"] for trace in spec["data"]] == ["step 0", "step 60"]
    assert 'max="119" step="1" value="119"' in html_of(
        depth(subject(), where("?step=100000"), [], None)
    )


def test_a_report_has_the_start_the_middle_and_the_end() -> None:
    made = figures_of(all_depths(in_report()))
    names = [trace["name"] for trace in made["depth-spread"]["data"]]
    assert names == ["step 0", "step 59", "step 119"]
