"""What is said of a run in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.figures.reading import Reading
from nethook.page.sections.about import (
    _ran,
    _time,
    events_of,
    facts_of,
    ran_of,
    subtitle_of,
)
from nethook.runs.writing.writer import RunWriter
from tests.figures.shared import training


@pytest.fixture(scope="module")
def reading() -> Reading:
    return Reading(training())


def test_the_numbers_beside_the_verdict(reading: Reading) -> None:
    facts = dict(facts_of(reading))
    assert facts["steps"] == "120"
    assert facts["layers"] == "7"
    assert facts["parameters"] == f"{4 * 2 * 240:,}"  # four linear layers, weight and bias
    assert "cost of watching" not in facts  # it has a section of its own
    assert {"loss", "evaluation loss"} <= set(facts)
    assert facts["loss"].endswith(" (mean over batches)")
    assert "ranks" not in facts


def test_when_it_ran_and_how_it_ended(reading: Reading) -> None:
    text = subtitle_of(reading)
    assert " UTC · ran " in text
    assert text.endswith(" in 2 sessions · finished")


def test_a_run_without_anything_has_facts_too(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db"):
        pass
    empty = Reading(tmp_path / "a.db")
    assert facts_of(empty) == [("steps", "0"), ("layers", "0")]
    assert events_of(empty) == []
    assert ran_of(empty)[0][0] == "file"


def test_events_have_no_data_and_many_are_counted(reading: Reading, tmp_path: Path) -> None:
    shown = events_of(reading)
    assert [row[1] for row in shown] == ["order", "batch", "resumed"]
    assert "0.123456789" not in str(shown)
    with RunWriter(tmp_path / "a.db", capacity=1000) as writer:
        for step in range(203):
            writer.event("kind", step, f"event {step}")
    many = events_of(Reading(tmp_path / "a.db"))
    assert len(many) == 201
    assert many[-1][-1] == "… and 3 more"


def test_sessions_are_added_without_what_lies_between() -> None:
    sessions = [
        {"started": 100.0, "ended": 130.0},
        {"started": 1000.0, "ended": 1005.0},
        {"started": 2000.0},  # it is not over
        {"started": "x", "ended": 3000.0},
    ]
    assert _ran(sessions) == 35.0


@pytest.mark.parametrize(
    ("value", "time"), [(5, 5.0), (0, None), (-1, None), (1e12, None), ("5", None), (None, None)]
)
def test_a_time_that_cannot_be_is_none(value: object, time: float | None) -> None:
    assert _time(value) == time
