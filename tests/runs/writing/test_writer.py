"""Writing a run: what the training thread sees."""

from __future__ import annotations

import gc
import re
import sqlite3
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import nethook
from nethook.errors import OptionError, RunExistsError, RunInUseError
from nethook.runs.format.schema import MAX_UNITS
from nethook.runs.writing import writer as writer_module
from nethook.runs.writing.store import MAX_EVENTS, MAX_LOSSES, Store
from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import INDEX
from tests.runs.made import ELEMENTS, fold, values, write_run


def test_a_run_is_one_file_after_closing(tmp_path: Path) -> None:
    write_run(tmp_path / "a.db")
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


def test_handing_over_gives_another_window_and_copies_nothing(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.add_series("x", "outputs")
        first = writer.window()
        fold(first, 0, [0])
        rows = first.rows
        second = writer.submit(first)
        assert second is not first
        assert second.rows is not rows
        assert second.steps == 0


def test_a_used_window_comes_back_empty(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db", flush_every=0.01) as writer:
        writer.add_series("x", "outputs", units=4)
        known = set()
        window = writer.window()
        for step in range(30):
            assert not window.histograms.any()
            assert not window.bits.any()
            assert not window.seen.any()
            assert window.rows[0, INDEX["min"]] == np.inf
            known.add(id(window.rows))
            fold(window, step, [0])
            window = writer.submit(window)
            writer.flush()
        assert len(known) <= 5  # the same few buffers, over and over


def test_when_the_writer_is_behind_windows_merge_and_nothing_is_lost(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "a.db", capacity=2)
    writer.add_series("x", "outputs", units=4)
    blocker = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    writer.flush()
    blocker.execute("BEGIN IMMEDIATE")  # a disk that does not answer
    window, most = writer.window(), 0
    for step in range(200):  # none of which waits: the disk answers only after the last
        fold(window, step, [0])
        window = writer.submit(window)
        most = max(most, writer.waiting)
    assert most == 2
    blocker.execute("COMMIT")
    blocker.close()
    writer.close(window)
    series = nethook.open_run(tmp_path / "a.db").series("x")
    assert len(series) < 10
    assert series.steps.sum() == series.seen.sum() == 200
    data = np.concatenate([values(0, step) for step in range(200)])
    assert series.total()["count"] == 200 * ELEMENTS
    assert series.total()["m2"] == pytest.approx(((data - data.mean()) ** 2).sum(), rel=1e-12)


def test_an_open_window_is_shown_and_then_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "PROVISIONAL", 0.01)
    writer = RunWriter(tmp_path / "a.db", flush_every=0.01)
    writer.add_series("x", "outputs", units=4)
    window = writer.window()
    fold(window, 0, [0])
    time.sleep(0.02)
    assert writer.provisional_due
    writer.submit_provisional(window)
    assert not writer.provisional_due
    assert writer.flush()
    run = nethook.open_run(tmp_path / "a.db")
    series = run.series("x")
    assert series.closed.tolist() == [False]
    assert series["count"].tolist() == [ELEMENTS]
    assert run.histograms("x").counts.sum() == ELEMENTS
    fold(window, 1, [0])
    writer.close(window)
    series = run.series("x")
    assert series.closed.tolist() == [True]
    assert series.last_step.tolist() == [1]
    assert series["count"].tolist() == [2 * ELEMENTS]
    assert run.histograms("x").counts.sum() == 2 * ELEMENTS


def test_a_window_that_was_cut_off_is_kept_as_it_was(tmp_path: Path) -> None:
    program = """
import os, sys
from nethook.runs.writing.writer import RunWriter
from tests.runs.made import fold
writer = RunWriter(sys.argv[1])
writer.add_series("x", "outputs")
window = writer.window()
fold(window, 0, [0])
writer.submit_provisional(window)
writer.flush()
os._exit(9)
"""
    path = tmp_path / "a.db"
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", program, str(path)], cwd=root, check=False)
    assert nethook.open_run(path).series("x").closed.tolist() == [False]
    with RunWriter(path, resume=True) as writer:
        assert writer.next_step == 1
    series = nethook.open_run(path).series("x")
    assert series.closed.tolist() == [True]
    assert series["count"].tolist() == [ELEMENTS]


def test_a_run_that_is_continued_is_as_one_that_never_stopped(tmp_path: Path) -> None:
    write_run(tmp_path / "whole.db", 150)
    write_run(tmp_path / "parts.db", 37)
    for more in (1, 62, 50):
        write_run(tmp_path / "parts.db", more, resume=True)
    whole, parts = nethook.open_run(tmp_path / "whole.db"), nethook.open_run(tmp_path / "parts.db")
    for at in range(3):
        a, b = whole.series(f"layer{at}"), parts.series(f"layer{at}")
        assert np.array_equal(a.rows, b.rows)
        assert np.array_equal(a.last_step, b.last_step)
        total = parts.histograms(f"layer{at}").counts.sum(axis=0)
        assert np.array_equal(whole.histograms(f"layer{at}").counts.sum(axis=0), total)
    for points in (1, 3, 30, 200):  # every level, also those that were cut in the middle
        a, b = whole.overview(points=points), parts.overview(points=points)
        assert np.array_equal(a.course, b.course, equal_nan=True)
        assert np.array_equal(a.last_step, b.last_step)
    assert np.array_equal(whole.scalars["loss"].value, parts.scalars["loss"].value)
    assert [event.kind for event in parts.events] == ["resumed"] * 3
    # A busy machine takes seconds between the two, and the message says so.
    assert re.match(
        r"continued after step 36(, \d+ s after it had stopped)?$", parts.events[0].message
    )


def test_an_existing_run_is_refused_and_untouched(tmp_path: Path) -> None:
    write_run(tmp_path / "a.db")
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(RunExistsError, match="resume=True"):
        RunWriter(tmp_path / "a.db")
    assert (tmp_path / "a.db").read_bytes() == before


def test_two_writers_do_not_share_a_run(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as first:
        with pytest.raises(RunInUseError, match=r"a.db' is in use: process \d+ is writing it"):
            RunWriter(tmp_path / "a.db", resume=True)
        first.event("still", 0)
    assert [e.kind for e in nethook.open_run(tmp_path / "a.db").events] == ["still"]
    RunWriter(tmp_path / "a.db", resume=True).close()  # it was closed: now it may


def test_a_writer_whose_run_was_taken_over_stops(tmp_path: Path) -> None:
    writer = write_run(tmp_path / "a.db", close=False, flush_every=100)
    writer.flush()
    thief = sqlite3.connect(tmp_path / "a.db")
    thief.execute("UPDATE info SET value = ? WHERE key = 'writer'", ('{"pid": 1, "token": "x"}',))
    thief.commit()
    thief.close()
    writer.event("lost", 0)
    with pytest.warns(RuntimeWarning, match="process 1 took the run over"):
        writer.close()
    assert "took the run over" in str(writer.problem)


def test_series_can_come_later(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "a.db")
    assert writer.add_series("x", "outputs") == 0
    window = writer.window()
    fold(window, 0, [0])
    assert writer.add_series("y", "outputs", units=4) == 1
    assert writer.add_series("x", "outputs") == 0  # known
    window = writer.widen(window)
    fold(window, 1, [0, 1])
    window = writer.submit(window)
    assert len(window.layout) == 2
    writer.close(window)
    run = nethook.open_run(tmp_path / "a.db")
    assert run.series("x").seen.tolist() == [2]
    assert run.series("y").seen.tolist() == [1]
    assert run.series("y").coverage.tolist() == [0.5]


def test_too_many_units_are_no_units(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.add_series("vocabulary", "outputs", units=MAX_UNITS + 1)
        assert writer.window().bits.size == 0


def test_scalars_come_back_and_old_points_go(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db", flush_every=0.02) as writer:
        for step in range(3000):
            writer.log("all", step / 7, step)
            writer.log("recent", float(step), step, keep=600)
            if step == 1700:
                writer.flush()
        writer.log("nan", float("nan"), 5)
    scalars = nethook.open_run(tmp_path / "a.db").scalars
    assert scalars["all"].value.tolist() == [step / 7 for step in range(3000)]
    assert scalars["all"].step.tolist() == list(range(3000))
    assert abs(scalars["all"].time - time.time()).max() < 60
    assert scalars["recent"].step.tolist() == list(range(2400, 3000))
    assert np.isnan(scalars["nan"].value[0])
    connection = sqlite3.connect(tmp_path / "a.db")
    assert connection.execute("SELECT count(*) FROM scalars").fetchone()[0] <= 6 + 3 + 1
    connection.close()


def test_many_events_and_losses_do_not_fill_the_file(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db", flush_every=0.02) as writer:
        for step in range(MAX_EVENTS + 500):
            writer.event("often", step, "again", "conv1", {"n": step})
        for step in range(3 * MAX_LOSSES):
            writer.loss("loss", step, {"kind": "NllLoss"})
        writer.event("once", 3)
    run = nethook.open_run(tmp_path / "a.db")
    often = [event for event in run.events if event.kind == "often"]
    assert len(often) == MAX_EVENTS
    assert often[-1].repeats == 500
    assert often[0].data == {"n": 0}
    assert sum(event.kind == "once" for event in run.events) == 1
    steps = [loss.step for loss in run.losses]
    assert MAX_LOSSES // 2 <= len(steps) <= MAX_LOSSES
    assert steps[0] == 0
    assert len({b - a for a, b in pairwise(steps)}) == 1  # evenly


def test_findings_and_facts_are_replaced(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db", info={"model": "resnet"}) as writer:
        writer.findings([{"code": "dead-units", "severity": "warning", "sites": ["a"]}])
        writer.flush()
        writer.findings([{"code": "non-finite", "severity": "error", "first_step": 3}])
        writer.info(overhead=0.01)
    run = nethook.open_run(tmp_path / "a.db")
    assert run.findings == ({"code": "non-finite", "severity": "error", "first_step": 3},)
    assert run.info["model"] == "resnet"
    assert run.info["overhead"] == 0.01
    assert run.info["finished"] >= run.info["started"]


def test_odd_texts_are_kept_readable(tmp_path: Path) -> None:
    odd = "\x1b[2J\x00\ud800 \u202e ünï"
    with RunWriter(tmp_path / "a.db") as writer:
        writer.add_site(odd, odd, {odd: odd})
        writer.add_series(odd, odd)
        writer.event(odd, 0, odd, odd, {"x": odd})
        writer.log(odd, 1.0, 0)
        writer.loss(odd, 0, {"x": odd})
    assert writer.problem is None
    run = nethook.open_run(tmp_path / "a.db")
    for text in (run.sites[0].address, run.events[0].message, next(iter(run.scalars))):
        assert "ünï" in text
        assert "\x1b" not in text


def test_nothing_raises_after_closing(tmp_path: Path) -> None:
    writer = write_run(tmp_path / "a.db")
    window = writer.window()
    fold(window, 99, [0])
    assert writer.submit(window) is window
    writer.submit_provisional(window)
    writer.log("x", 1.0, 1)
    writer.event("x", 1)
    writer.loss("x", 1, {})
    writer.findings([])
    writer.info(x=1)
    writer.add_site("x")
    assert writer.flush() is False
    writer.close(window)
    assert "closed" in repr(writer)


@pytest.mark.parametrize("name", ["a b?c#d%20.db", "ünï.db", "no-suffix", "x.rank.db"])
def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / name, 5)
    assert len(nethook.open_run(tmp_path / name).series("layer0")) == 5
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "raise ValueError", "del writer"])
def test_a_program_that_ends_without_closing_loses_nothing(tmp_path: Path, end: str) -> None:
    program = f"""
import sys
from tests.runs.made import write_run
writer = write_run(sys.argv[1], 40, close=False, flush_every=100)
writer.event("last", 39)
{end}
"""
    path = tmp_path / "a.db"
    root = Path(__file__).parents[3]
    subprocess.run(
        [sys.executable, "-c", program, str(path)], cwd=root, check=False, capture_output=True
    )
    run = nethook.open_run(path)
    assert len(run.series("layer0")) == 40
    assert run.events[0].kind == "last"
    assert run.ranks[0].state == "finished"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_is_dropped_ends_its_thread(tmp_path: Path) -> None:
    writer = write_run(tmp_path / "a.db", 5, close=False)
    thread = writer._thread
    del writer
    gc.collect()
    assert not thread.is_alive()
    assert len(nethook.open_run(tmp_path / "a.db").series("layer0")) == 5


def test_no_thread_stays_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    write_run(tmp_path / "a.db")
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rank": 2, "world_size": 2}, r"`rank` must be .* \(2\); got 2"),
        ({"rank": -1}, r"`rank` must be .* \(1\); got -1"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, int], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        RunWriter(tmp_path / "a.db", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_phase_that_does_not_exist(tmp_path: Path) -> None:
    with (
        RunWriter(tmp_path / "a.db") as writer,
        pytest.raises(OptionError, match=r"`phase` must be one of .*; got 'test'"),
    ):
        writer.window("test")


def test_a_mistake_of_ours_is_said_once_and_stays_in_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RunWriter(tmp_path / "a.db", flush_every=100)
    monkeypatch.setattr("nethook.runs.writing.store.Store.add_event", None)
    for _ in range(100):
        writer.event("x", 0)
    with pytest.warns(RuntimeWarning, match="TypeError") as caught:
        writer.close()
    assert len(caught) == 1
    assert "training is not affected; nothing more is recorded" in str(caught[0].message)


def test_series_survive_a_transaction_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came with it is lost, as the run says; what follows means nothing without its series."""
    writer = RunWriter(tmp_path / "a.db", flush_every=100)
    commit, failures = Store.commit, [sqlite3.OperationalError("database or disk is full")]

    def fail_once(store: Store) -> None:
        if failures:
            raise failures.pop()
        commit(store)

    monkeypatch.setattr(Store, "commit", fail_once)
    writer.add_site("x", "Linear")
    writer.add_series("x", "outputs")
    window = writer.window()
    fold(window, 0, [0])
    window = writer.submit(window)
    with pytest.warns(RuntimeWarning, match="disk is full"):
        flushed = writer.flush()
    assert not flushed
    fold(window, 1, [0])
    writer.close(window)
    run = nethook.open_run(tmp_path / "a.db")
    assert run.series("x").last_step.tolist() == [1]
    assert [site.address for site in run.sites] == ["x"]
    assert [event.kind for event in run.events] == ["recording-interrupted"]
