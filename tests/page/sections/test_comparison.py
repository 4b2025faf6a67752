"""Several runs beside each other: what ran differently first, then where they diverge."""

from __future__ import annotations

import shutil
from pathlib import Path

from nethook.figures.difference import Difference
from nethook.page.report.links import ReportLinks
from nethook.page.section import Subject
from nethook.page.sections.comparison import Choice, Pair, comparison, whole_comparison
from nethook.runs.writing.writer import RunWriter
from tests.figures.shared import training
from tests.page.shown import figures_of, html_of, reading, subject, text_of, where


def pair() -> Pair:
    difference = Difference(reading().run, reading("changed").run)
    return Pair(subject(), subject("changed"), ("training", "changed"), difference)


def test_what_ran_differently_comes_before_curves_and_divergence() -> None:
    section = comparison([pair()], where(), Choice())
    shown = text_of(section)
    assert "They diverge at step 61" in shown
    assert "learning rate at step 0 0.1 0.2" in shown
    assert shown.index("What ran differently") < shown.index("Where they diverge training")
    assert all(spec["data"] for spec in figures_of(section).values())


def test_times_of_a_diagnosis_are_no_difference(tmp_path: Path) -> None:
    paths = [tmp_path / "a.db", tmp_path / "b.db"]
    for number, path in enumerate(paths):
        shutil.copy(training(), path)
        with RunWriter(path, resume=True) as writer:
            writer.info(
                diagnosis={"time": 5.0 + number, "seconds": number, "failed": []},
                command=["python", "train.py", "--lr", f"0.{number + 1}", "--seed=7"],
            )
    difference = Difference(*paths)
    assert difference.parting.facts[0] == ("lr", "0.1", "0.2")  # what was chosen comes first
    assert not any("diagnosis" in name for name, _, _ in difference.parting.facts)
    assert not any(name == "seed" for name, _, _ in difference.parting.facts)


def test_of_several_runs_each_has_its_line() -> None:
    shown = text_of(comparison([pair(), pair()], where("?b=2"), Choice(against=2)))
    assert shown.count("training and changed:") == 2


def test_a_file_has_every_quantity() -> None:
    links = ReportLinks({})
    first, second = (Subject(reading(name), links, name) for name in ("training", "changed"))
    section = whole_comparison(pair()._replace(first=first, second=second))
    made = figures_of(section)
    assert {"runs", "parting", "ratio-spread"} <= set(made)
    shown = html_of(section, live=False, drawn=made)
    assert "<select" not in shown
    assert 'role="tab"' in shown
