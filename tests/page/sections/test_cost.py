"""What watching cost."""

from __future__ import annotations

from pathlib import Path

from nethook.figures.reading import Reading
from nethook.page.sections.cost import cost, cost_facts, courses
from nethook.runs.writing.writer import RunWriter
from tests.page.shown import figures_of, reading, subject, text_of


def test_the_cost_is_told() -> None:
    assert dict(cost_facts(reading()))["cost of watching"] == "2.1 %"
    section = cost(subject())
    assert "2.1 %" in text_of(section)
    assert figures_of(section)["costs"]["data"]


def test_the_parts_of_the_cost_are_told(tmp_path: Path) -> None:
    parts = {"start_up": 0.2, "opening": 0.11, "steady": 4.2, "closing": 0.3}
    spent = {f"{name}_seconds": seconds for name, seconds in parts.items()}
    with RunWriter(tmp_path / "a.db") as writer:
        writer.info(overhead=0.5, cost={**spent, "steady_overhead": 0.034, "total_seconds": 4.81})
    facts = dict(cost_facts(Reading(tmp_path / "a.db")))
    assert facts["cost of watching"] == "3.4 % per step and 4.8 s in all"
    assert facts["of which"] == "start-up 0.2 s, opening 0.1 s, steady 4.2 s, closing 0.3 s"


def test_courses_are_a_figure_without_timings_too() -> None:
    assert "layout" in courses(reading())
