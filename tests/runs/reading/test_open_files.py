"""How many files are open at once."""

from __future__ import annotations

import gc
import shutil
import sqlite3
import warnings
from pathlib import Path

import pytest

import nethook
from nethook.errors import NotARunError
from nethook.runs.reading import safe_sqlite
from nethook.runs.reading.open_files import OpenFiles
from nethook.runs.writing.writer import RunWriter


class File:
    """Stands for an open file."""

    def __init__(self, busy: bool = False) -> None:
        self.open = True
        self.busy = busy

    def rest(self) -> bool:
        self.open = self.busy
        return not self.busy


def test_the_file_that_was_used_longest_ago_rests() -> None:
    files = OpenFiles(2)
    a, b, c = File(), File(), File()
    for used in (a, b, a, c):
        files.use(used)
    assert (a.open, b.open, c.open) == (True, False, True)


def test_a_file_that_is_read_just_now_stays_open() -> None:
    files = OpenFiles(1)
    busy, other = File(busy=True), File()
    files.use(busy)
    files.use(other)
    assert busy.open
    busy.busy = False
    files.use(other)
    assert (busy.open, other.open) == (False, True)


def ranks(folder: Path, count: int) -> Path:
    path = folder / "run.db"
    with RunWriter(path, world_size=count) as writer:
        writer.log("loss:train.py:1", 0.5, 0)
    for rank in range(1, count):
        shutil.copy(path, folder / f"run.rank{rank}.db")
    return path


def test_a_run_of_many_ranks_has_few_files_open(tmp_path: Path) -> None:
    def opened() -> int:
        links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return sum(str(tmp_path) in str(link.readlink()) for link in links)

    path = ranks(tmp_path, 100)
    with nethook.open_run(path) as run:
        assert len(run.ranks) == 100
        assert run.scalars
        assert 0 < opened() <= 64
        assert len(run.sampled) == 16
    assert opened() == 0


def test_a_run_that_nobody_closes_is_closed_with_it(tmp_path: Path) -> None:
    path = ranks(tmp_path, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Python 3.13 warns of a connection that is dropped open
        run = nethook.open_run(path)
        assert len(run.ranks) == 2
        del run
        gc.collect()


def test_a_file_that_has_rested_is_checked_again_only_if_it_was_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[Path] = []
    check = safe_sqlite.check_schema

    def noted(connection: sqlite3.Connection, path: Path) -> None:
        checked.append(path)
        check(connection, path)

    monkeypatch.setattr(safe_sqlite, "check_schema", noted)
    path = ranks(tmp_path, 1)
    file = safe_sqlite.GuardedFile(path)
    for _ in range(2):
        assert file.rest()
        assert file.facts("rank") == {"rank": 0}
    assert checked == [path]
    assert file.rest()
    writer = sqlite3.connect(path)
    writer.execute("CREATE VIEW more AS SELECT 1")
    writer.commit()
    writer.close()
    with pytest.raises(NotARunError, match="has a view 'more'"):
        file.facts("rank")
    assert checked == [path, path]
