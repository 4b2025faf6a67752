"""Where recorders write: rows, events, the last windows."""

from __future__ import annotations

import pytest

import nethook
from nethook.runs import names
from nethook.runs.writing.writer import RunWriter
from nethook.watching.clock.clock import Clock
from nethook.watching.journal import Journal, Options
from nethook.watching.schedule import Schedule


@pytest.fixture
def journal(tmp_path):
    writer = RunWriter(tmp_path / "run.db")
    yield Journal(writer, Clock(7), Schedule(None, first_step=7), Options(), 16)
    writer.close()


def test_an_event_ends_the_window_and_a_note_does_not(journal):
    journal.note_event("note", "quietly")
    assert not journal.eventful
    journal.event("note", "loudly", "fc", {"a": 1})
    assert journal.eventful
    journal.writer.close()
    with nethook.open_run(journal.run_path()) as run:
        events = [(each.step, each.message, each.address) for each in run.events]
        assert (7, "quietly", "") in events
        assert (7, "loudly", "fc") in events


def test_a_failure_is_told_and_does_not_close_the_window(journal):
    journal.guard.silent = True
    journal.guard.failed("the loss record", ValueError("odd"), lambda: None)
    assert not journal.eventful
    journal.writer.close()
    with nethook.open_run(journal.run_path()) as run:
        [event] = [each for each in run.events if each.kind == names.FAILED]
    assert (event.step, event.data["where"]) == (7, "the loss record")
    assert event.message == "the loss record failed and is off: ValueError: odd"
    assert "odd" in event.data["traceback"]


def test_giving_up_takes_everything_off(journal):
    seen = []
    journal.on_give_up += [lambda: seen.append("hooks"), lambda: seen.append("passes")]
    journal.guard.stop()
    assert seen == ["hooks", "passes"]


def test_rows_of_passes_are_made_when_there_is_one(journal):
    assert not journal.has_off
    assert journal.off is journal.off
    assert journal.has_off
    assert journal.off is not journal.train
    assert journal.row("fc", "outputs") == journal.row("fc", "outputs") == 0


def test_updates_need_the_weights():
    assert Options(("updates",)).wants_params
    assert Options(("params",)).wants_params
    assert not Options(("outputs",)).wants_params
