"""What watching cost, and what happened."""

from __future__ import annotations

from nethook.page.sections.health import courses, health
from tests.page.shown import opened, reading, text_of, where


def test_cost_ranks_events_and_what_ran_are_told() -> None:
    shown = text_of(health(opened(), reading(), where()))
    assert "2.1 %" in shown
    assert "zero_grad, forward, backward, step" in shown
    assert "finished" in shown
    assert "AdamW" in shown


def test_the_data_of_a_saved_batch_is_not_shown() -> None:
    assert "0.123456789" not in text_of(health(opened(), reading(), where()))


def test_courses_are_a_figure_without_timings_too() -> None:
    assert "layout" in courses(reading())
