"""Ranks go on with the same step, whichever was killed first and whichever comes back first."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

import nethook
from nethook.runs.paths import rank_path
from nethook.runs.writing.writer import RunWriter
from tests.runs.made import write_run


def ended_at(path: Path, *steps: int, **options: object) -> None:
    """A session of several ranks, each of which has come so far."""
    writers = [
        write_run(path, count, rank=rank, world_size=len(steps), close=False, **options)
        for rank, count in enumerate(steps)
    ]
    for writer in writers:
        writer.close()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_all_go_on_with_the_step_that_all_have(order: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    ended_at(path, 30, 27, 29)
    writers = {}
    for rank in order:  # each has trained a little when the next comes
        options = {"rank": rank, "world_size": 3, "resume": True, "close": False}
        writers[rank] = write_run(path, 4, **options)
        writers[rank].flush()
    for writer in writers.values():
        writer.close()
    run = nethook.open_run(path)
    for rank in order:
        info = run.rank(rank).info
        assert info["sessions"][-1]["first_step"] == 27
        assert run.rank(rank).scalars["loss"].step.tolist() == list(range(31))


def test_a_rank_that_was_away_for_a_session_comes_back_with_the_others(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    ended_at(path, 10, 10, 8)
    ended_at(path, 20, 20, resume=True)  # two are left: what the third lacks is none of theirs
    assert nethook.open_run(path).rank(0).scalars["loss"].step.tolist() == list(range(28))
    for rank in (0, 1, 2):
        with RunWriter(path, rank=rank, world_size=3, resume=True) as writer:
            assert writer.next_step == 28


def test_a_rank_that_is_new_begins_with_the_others(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    ended_at(path, 10)
    first = RunWriter(path, world_size=2, resume=True)
    second = RunWriter(path, rank=1, world_size=2, resume=True)
    assert (first.next_step, second.next_step) == (10, 10)
    second.close()
    first.close()


def test_a_rank_of_another_machine_that_died_a_moment_ago_drops_nothing(tmp_path: Path) -> None:
    """Its heartbeat looks alive; but it began before this rank's own session had ended."""
    path = tmp_path / "a.db"
    ended_at(path, 30, 30)
    with closing(sqlite3.connect(rank_path(path, 1))) as connection:
        mark = json.dumps({"host": "elsewhere", "pid": 1, "token": "x"})
        facts = {"writer": mark, "beat": json.dumps(time.time()), "finished": "null"}
        for name, value in facts.items():
            connection.execute("UPDATE info SET value = ? WHERE key = ?", (value, name))
        connection.commit()
    with RunWriter(path, world_size=2, resume=True) as writer:
        assert writer.next_step == 30
