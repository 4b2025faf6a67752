"""Opening a run: where it goes on, and what is left where it cannot be opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from nethook.errors import OtherModelError, RunInUseError
from nethook.runs.writing.connection import DiskError
from nethook.runs.writing.opening import Opening, words_of
from tests.runs.made import write_run


def test_a_new_run_begins_at_its_start(tmp_path: Path) -> None:
    run = Opening(tmp_path / "a.db", {"command": ["train.py"]}).open()
    assert (run.next_step, run.dropped, run.earlier, dict(run.sites)) == (0, None, {}, {})
    kept = dict(run.storage.connection.execute("SELECT key, value FROM info").fetchall())
    assert kept["command"] == '["train.py"]'
    assert not run.storage.connection.in_transaction
    run.storage.close()


def test_it_goes_on_after_the_last_step(tmp_path: Path) -> None:
    write_run(tmp_path / "a.db", 6)
    run = Opening(tmp_path / "a.db", {}, resume=True).open()
    assert (run.next_step, run.dropped) == (6, None)
    assert set(run.sites) == {"layer0", "layer1", "layer2"}
    assert run.earlier["finished"]
    run.storage.close()


def test_or_with_an_earlier_one_whose_record_is_dropped(tmp_path: Path) -> None:
    write_run(tmp_path / "a.db", 6)
    run = Opening(tmp_path / "a.db", {}, resume=True, step=2).open()
    assert (run.next_step, run.dropped) == (2, (2, 5))
    assert run.store.last_step == 1
    run.storage.close()


def test_the_run_of_another_model_is_left_as_it_is(tmp_path: Path) -> None:
    write_run(tmp_path / "a.db", 6)
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(OtherModelError, match="'layer1' is missing"):
        Opening(tmp_path / "a.db", {}, resume=True, model={"layer0": ("Linear", None)}).open()
    assert (tmp_path / "a.db").read_bytes() == before


def test_a_run_that_is_being_written_is_in_use(tmp_path: Path) -> None:
    writer = write_run(tmp_path / "a.db", 2, close=False)
    writer.flush()
    with pytest.raises(RunInUseError, match=r"a\.db' is in use: process \d+ is writing it"):
        Opening(tmp_path / "a.db", {}, resume=True).open()
    assert (tmp_path / "a.db").exists()
    writer.close()


def test_what_fails_on_the_way_leaves_no_file(tmp_path: Path) -> None:
    class Unwritable:
        def __str__(self) -> str:
            raise RuntimeError("it has no text")

    with pytest.raises(RuntimeError, match="it has no text"):
        Opening(tmp_path / "a.db", {Unwritable(): 1}).open()  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []


def test_the_words_of_a_disk_come_without_the_path() -> None:
    full = DiskError("the run 'a.db' cannot be written: database or disk is full")
    full.__cause__ = sqlite3.OperationalError("database or disk is full")
    assert words_of(full) == "database or disk is full"
    assert words_of(OSError(28, "No space left on device")) == "[Errno 28] No space left on device"
    assert words_of(DiskError("by itself")) == "by itself"
