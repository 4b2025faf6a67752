"""The writer thread, run here by hand: what waits is written, and what fails is tried again."""

from __future__ import annotations

import sqlite3
import warnings
from pathlib import Path

import pytest

import nethook
from nethook.runs.writing.opening import Opening
from nethook.runs.writing.queue import WindowQueue
from nethook.runs.writing.store import Event, NewSeries, Store, layout_info
from nethook.runs.writing.thread import Health, write_until_stopped
from nethook.stats.sheet import layout_of
from tests.runs.made import fold


def waiting(steps: int = 3) -> WindowQueue:
    """What a training thread leaves behind that has asked the writer to stop."""
    queue = WindowQueue()
    queue.put_catalogue(NewSeries(0, "fc", "outputs", 0, {}))
    for step in range(steps):
        window = queue.empty(layout_of([0]), "train")
        fold(window, step, [0])
        queue.put(window, always=True)
        queue.put_note("scalar", ("loss", [(step, 1.0, float(step))], 0))
    queue.put_note("event", Event(1, 1.0, "mode", "", "it changed", {}))
    queue.put_findings([{"code": "dead-units", "severity": "error"}])
    queue.ask_to_stop()
    return queue


def write(path: Path, queue: WindowQueue) -> Health:
    health = Health(path)
    write_until_stopped(Opening(path, {"layout": layout_info()}).open(), queue, health, 0.01)
    return health


def test_everything_that_waits_is_written_before_it_ends(tmp_path: Path) -> None:
    queue = waiting()
    health = write(tmp_path / "a.db", queue)
    assert health.problem is None
    assert queue.stopped
    run = nethook.open_run(tmp_path / "a.db")
    assert run.series("fc").last_step.tolist() == [0, 1, 2]
    assert run.scalars["loss"].value.tolist() == [0, 1, 2]
    assert [event.message for event in run.events] == ["it changed"]
    assert [finding["code"] for finding in run.findings] == ["dead-units"]
    assert run.info["finished"]


def test_a_commit_that_fails_costs_windows_and_no_notes(tmp_path, monkeypatch) -> None:
    commit, failures = Store.commit, [sqlite3.OperationalError("disk I/O error")]

    def failing(store: Store) -> None:
        if failures:
            raise failures.pop()
        commit(store)

    queue = waiting(1)
    queue.stopping = False  # the last try of all is not repeated
    queue.ask_to_flush()
    opened = Opening(tmp_path / "a.db", {"layout": layout_info()}).open()
    monkeypatch.setattr(Store, "commit", failing)
    put_back = queue.put_back

    def then_stop(*arguments) -> None:
        put_back(*arguments)
        queue.ask_to_stop()

    monkeypatch.setattr(queue, "put_back", then_stop)
    health = Health(tmp_path / "a.db")
    with pytest.warns(RuntimeWarning, match=r"disk I/O error.*recording goes on when it can"):
        write_until_stopped(opened, queue, health, 0.01)
    run = nethook.open_run(tmp_path / "a.db")
    assert run.scalars["loss"].value.tolist() == [0]
    assert {event.kind for event in run.events} == {"mode", "recording-interrupted"}


def test_a_mistake_of_ours_ends_it_with_one_warning(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(Store, "add_event", None)
    queue = waiting()
    with pytest.warns(RuntimeWarning, match=r"TypeError.*nothing more is recorded") as said:
        health = write(tmp_path / "a.db", queue)
    assert len(said) == 1
    assert health.problem.startswith("TypeError")
    assert queue.stopped


def test_the_first_trouble_is_said_once_and_the_last_is_known(tmp_path: Path) -> None:
    health = Health(tmp_path / "a.db")
    with pytest.warns(RuntimeWarning, match=r"cannot write '.*a.db' \(full\): training is not"):
        health.fail("full", ends=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        health.fail("gone", ends=True)
    assert health.problem == "gone"


def test_warnings_as_errors_reach_nobody(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Health(tmp_path / "a.db").fail("full", ends=False)
