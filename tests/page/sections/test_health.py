"""What watching cost, and what happened."""

from __future__ import annotations

from pathlib import Path

from nethook.figures.reading import Reading
from nethook.page.sections.health import _cost, courses, health
from nethook.runs.writing.writer import RunWriter
from tests.page.shown import opened, reading, text_of, where


def test_cost_ranks_events_and_what_ran_are_told() -> None:
    shown = text_of(health(opened(), reading(), where()))
    assert "2.1 %" in shown
    assert "zero_grad, forward, backward, step" in shown
    assert "finished" in shown
    assert "AdamW" in shown


def test_the_parts_of_the_cost_are_told(tmp_path: Path) -> None:
    parts = {"start_up": 0.2, "opening": 0.11, "steady": 4.2, "closing": 0.3}
    cost = {f"{name}_seconds": seconds for name, seconds in parts.items()}
    with RunWriter(tmp_path / "a.db") as writer:
        writer.info(overhead=0.5, cost={**cost, "steady_overhead": 0.034, "total_seconds": 4.81})
    shown = text_of(_cost(Reading(tmp_path / "a.db")))
    assert "3.4 % per step and 4.8 s in all" in shown
    assert "start-up 0.2 s, opening 0.1 s, steady 4.2 s, closing 0.3 s" in shown


def test_the_data_of_a_saved_batch_is_not_shown() -> None:
    assert "0.123456789" not in text_of(health(opened(), reading(), where()))


def test_courses_are_a_figure_without_timings_too() -> None:
    assert "layout" in courses(reading())
