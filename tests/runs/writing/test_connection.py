"""Opening the file of a run, and what a disk may say to it; test_faults has the real disks."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from nethook.errors import NotARunError, RunFileError
from nethook.runs.format.schema import APPLICATION_ID, TABLES, VERSION
from nethook.runs.format.validate import check_header, check_schema
from nethook.runs.writing.connection import DiskError, Storage, may_pass, remove_run


def said(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("the disk says")
    error.sqlite_errorcode = code
    return error


def test_a_new_file_has_the_tables_of_a_run_and_a_wal(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "a.db"
    storage = Storage(path)
    assert storage.made
    assert storage.file == path
    assert storage.lost() is None
    run = storage.connection.execute
    assert run("PRAGMA journal_mode").fetchone() == ("wal",)
    assert run("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert run("PRAGMA user_version").fetchone() == (VERSION,)
    check_schema(storage.connection, path)
    storage.close()
    check_header(path)


def test_a_file_that_is_there_is_neither_made_nor_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    storage = Storage(path)
    storage.connection.execute("INSERT INTO events VALUES (1, 0, 0, 'mode', '', '', '{}', 0)")
    storage.close()
    with pytest.raises(RunFileError, match="cannot be written"):
        Storage(path)
    again = Storage(path, resume=True)
    assert not again.made
    assert again.connection.execute("SELECT kind FROM events").fetchall() == [("mode",)]
    again.close()


def test_tables_that_came_later_are_added_to_an_older_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Storage(path).close()
    with sqlite3.connect(path) as older:
        older.execute("DROP TABLE snapshots")
        older.execute("PRAGMA user_version = 1")
        older.execute("INSERT INTO info VALUES ('a', '1')")
    older.close()
    storage = Storage(path, resume=True)
    check_schema(storage.connection, path)
    names = storage.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    assert {name for (name,) in names} == set(TABLES)
    storage.close()


def test_what_is_no_run_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("a text of more than a hundred bytes " * 5)
    with pytest.raises(NotARunError, match="does not begin as a SQLite file does"):
        Storage(tmp_path / "text.db", resume=True)
    assert (tmp_path / "text.db").exists()
    with pytest.raises(NotARunError, match="and not a run: it cannot be continued"):
        Storage(tmp_path, resume=True)


def test_a_file_that_is_gone_or_another(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "a.db")
    (tmp_path / "a.db").rename(tmp_path / "b.db")
    assert storage.lost() == f"{str(tmp_path / 'a.db')!r} was removed"
    (tmp_path / "a.db").touch()
    assert storage.lost() == f"{str(tmp_path / 'a.db')!r} was replaced by another file"
    storage.close()


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (said(sqlite3.SQLITE_FULL), True),
        (said(sqlite3.SQLITE_IOERR_WRITE), True),  # the lowest byte is SQLITE_IOERR
        (said(sqlite3.SQLITE_NOMEM), True),
        (said(sqlite3.SQLITE_CANTOPEN), False),
        (said(sqlite3.SQLITE_READONLY), False),
        (sqlite3.ProgrammingError("a mistake of ours"), False),
        (OSError(errno.ENOSPC, "no space"), True),
        (OSError(errno.EACCES, "not allowed"), False),
        (DiskError("full"), True),
        (ValueError("else"), False),
    ],
)
def test_errors_that_may_pass_are_those_of_disks(error: Exception, passes: bool) -> None:
    assert may_pass(error) is passes


def test_removing_takes_what_belongs_to_the_run_alone(tmp_path: Path) -> None:
    ends = ("", "-wal", "-shm", "-journal")
    for end in (*ends, "-other"):
        (tmp_path / f"a.db{end}").touch()
    remove_run(tmp_path / "a.db")
    remove_run(tmp_path / "a.db")  # and none of them need be there
    assert [path.name for path in tmp_path.iterdir()] == ["a.db-other"]
