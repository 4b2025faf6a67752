"""What a kill leaves right after creation does not block its path; anything else does."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import nethook
from nethook.errors import NotARunError, RunExistsError, RunFileError
from nethook.runs.format.schema import APPLICATION_ID, PAGE_SIZE
from nethook.runs.paths import new_run_path
from nethook.runs.stubs import is_stub
from nethook.runs.writing import connection, store
from nethook.runs.writing.writer import RunWriter
from tests.runs.made import write_run


def killed(path: Path, patch: Callable[[], None]) -> None:
    """A child begins to write a run, and ends where `patch` has it end."""
    child = os.fork()
    if child == 0:
        try:
            patch()
            RunWriter(path)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def end(*_: object, **__: object) -> None:
    os._exit(9)


def before_sqlite() -> None:
    connection._connect = end  # type: ignore[assignment]


def before_tables() -> None:
    class Tables(dict[str, str]):
        values = end  # type: ignore[assignment]

    connection.TABLES = Tables()  # type: ignore[misc]


def before_claiming() -> None:
    store.Store.claim = end  # type: ignore[assignment,method-assign]


def before_the_first_commit() -> None:
    store.Store.commit = end  # type: ignore[assignment,method-assign]


def after_the_first_commit() -> None:
    connection.Storage.publish = end  # type: ignore[assignment,method-assign]


@pytest.mark.parametrize(
    "moment",
    [
        before_sqlite,
        before_tables,
        before_claiming,
        before_the_first_commit,
        after_the_first_commit,
    ],
)
@pytest.mark.parametrize("resume", [False, True])
def test_a_stub_is_taken_over(moment: Callable[[], None], resume: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    killed(path, moment)
    assert path.exists()
    assert is_stub(path)
    write_run(path, 5, resume=resume)
    run = nethook.open_run(path)
    assert run.series("layer0").last_step.tolist() == [0, 1, 2, 3, 4]
    assert not run.events  # it began here
    assert len(run.info["sessions"]) == 1


def test_a_stub_of_the_second_that_names_it_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.0)
    first = new_run_path(tmp_path / "{time}.db")
    first.touch()
    assert new_run_path(tmp_path / "{time}.db").stem == f"{first.stem}-2"


def test_a_file_that_a_live_process_is_about_to_write_is_none(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db"):
        assert not is_stub(tmp_path / "a.db")
        with pytest.raises(RunExistsError):
            RunWriter(tmp_path / "a.db")


@pytest.mark.parametrize("there", [False, True])
def test_of_processes_that_begin_at_once_one_writes(there: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    if there:
        path.touch()
    (start, go), (result, tell) = os.pipe(), os.pipe()
    children = []
    for seed in range(3):
        child = os.fork()
        if child == 0:
            said = b"?"
            try:
                os.read(start, 1)
                writer = write_run(path, 5, seed=seed, close=False)
                os.read(start, 1)  # until the others have failed
                writer.close()
                said = b"w" if writer.problem is None else b"?"
            except RunFileError:
                said = b"r"
            finally:
                os.write(tell, said)
                os._exit(0)
        children.append(child)
    os.write(go, b"xxx")
    refused = os.read(result, 1) + os.read(result, 1)
    os.write(go, b"x")
    assert (refused, os.read(result, 1)) == (b"rr", b"w")
    for child in children:
        os.waitpid(child, 0)
    for end_of_pipe in (start, go, result, tell):
        os.close(end_of_pipe)
    assert nethook.open_run(path).series("layer0").last_step.tolist() == [0, 1, 2, 3, 4]


def test_a_run_with_anything_recorded_is_none(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.event("something", 0)
    assert not is_stub(tmp_path / "a.db")


def foreign_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE mine (x)")
        connection.commit()


def marked_by_another(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA application_id = 7")


def foreign_view(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("CREATE VIEW mine AS SELECT 1")


def plain_text(path: Path) -> None:
    path.write_text("somebody's notes")


def cut_off(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + bytes(50))


def another_empty_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA user_version = 3")


@pytest.mark.parametrize(
    "make",
    [foreign_table, marked_by_another, foreign_view, plain_text, cut_off, another_empty_database],
)
def test_a_file_of_somebody_elses_is_never_overwritten(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "a.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(RunExistsError, match="never overwritten"):
        RunWriter(path)
    with pytest.raises(NotARunError):
        RunWriter(path, resume=True)
    assert path.read_bytes() == before


def test_a_pipe_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    assert not is_stub(tmp_path / "pipe.db")
    assert not is_stub(tmp_path)
    assert not is_stub(tmp_path / "none.db")
    with pytest.raises(RunExistsError):
        RunWriter(tmp_path / "pipe.db")


def test_a_newer_run_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "a.db")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(RunFileError, match="written by a newer nethook"):
        RunWriter(tmp_path / "a.db", resume=True)
    assert (tmp_path / "a.db").read_bytes() == before
