"""The verdict: the worst first, each with its fix; nothing green that is not earned."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.figures.reading import Reading
from nethook.page.report.links import ReportLinks
from nethook.page.section import Subject
from nethook.page.sections.verdict import verdict
from nethook.running.verdict import verdict_lines
from nethook.runs.names import NON_FINITE
from nethook.runs.reading.run import open_run
from nethook.runs.writing.writer import RunWriter
from nethook.text.paragraphs import Style
from tests.page.shown import html_of, subject, text_of


def test_findings_are_named_the_worst_first_with_their_fixes() -> None:
    shown = text_of(verdict(subject()))
    assert "1 error, 1 warning, 1 note" in shown
    assert shown.index("Most units of block.relu2") < shown.index("Updates are large")
    assert shown.index("Most units of block.relu2") < shown.index("Lower the learning rate to")
    assert "cost of watching" not in shown  # that is no headline


def test_the_first_nan_is_named_as_in_the_terminal(tmp_path: Path) -> None:
    made = {"operation": "fc1/log#0", "source": "train.py:9 in forward", "reason": "log of 0"}
    with RunWriter(tmp_path / "a.db") as writer:
        writer.event(NON_FINITE, 7, "step 7: <b>", "fc1", {"replayed": made})
        writer.event(NON_FINITE, 8, "a later one", "fc2", {})
    with open_run(tmp_path / "a.db") as run:
        (line,) = [line for line in verdict_lines(run, Style(width=200)) if "NaN" in line]
    shown = text_of(verdict(Subject(Reading(tmp_path / "a.db"), ReportLinks({}), "a")))
    assert line == (
        "first NaN or infinity: step 7, fc1/log#0 at train.py:9: log of 0. nethook replay shows it."
    )
    assert line[1:] in shown
    assert "a later one" not in shown


def test_more_findings_than_fit_are_counted() -> None:
    assert "and 2 more" in text_of(verdict(subject(), most=1))


STATES = [
    ({"ended": {"error": "RuntimeError: CUDA out of memory", "interrupted": False}},
     "Crashed", "RuntimeError: CUDA out of memory", "error"),
    ({"ended": {"error": "KeyboardInterrupt", "interrupted": True}}, "Interrupted", "Ctrl-C", ""),
    ({"diagnosis": {"checks": 40}, "totals": {"steps": 3}}, "Too early to tell", "3 steps", ""),
    ({"diagnosis": {"checks": 40}, "totals": {"steps": 300}}, "No problems found", "40 checks",
     "good"),
    ({"totals": {"steps": 300}}, "Not judged", "no diagnosis", ""),
]  # fmt: skip


@pytest.mark.parametrize(("info", "word", "why", "kind"), STATES, ids=[row[1] for row in STATES])
def test_every_state_has_its_word_and_only_one_is_green(
    tmp_path: Path, info: dict, word: str, why: str, kind: str
) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.info(**info)
    section = verdict(Subject(Reading(tmp_path / "a.db"), ReportLinks({}), "a"))
    shown = text_of(section)
    assert word in shown
    assert why.casefold() in shown.casefold()
    wanted = f'<section class="card verdict{" " + kind if kind else ""}" id="verdict"'
    assert wanted in html_of(section)


def test_a_run_that_is_being_written_is_running(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "a.db", flush_every=0.01)
    section = verdict(Subject(Reading(tmp_path / "a.db"), ReportLinks({}), "a"))
    shown = text_of(section)
    writer.close()
    assert "Running" in shown
    assert "still being written when this was made" in shown
