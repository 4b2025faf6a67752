"""Files that a kill left before anything was recorded: they do not block their path."""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
from contextlib import closing
from pathlib import Path
from typing import Final

from nethook.runs.format.owner import is_alive
from nethook.runs.format.schema import APPLICATION_ID, PAGE_SIZE, TABLES
from nethook.runs.format.texts import from_json

_RECORDED: Final = ("windows", "scalars", "losses", "events", "snapshots", "findings")
_WAL: Final = b"\x02\x02"


def is_stub(path: Path) -> bool:
    """Whether a file is empty, or a database of ours in which nothing was ever recorded.

    A run that a live process is about to write is none.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return False  # a pipe would never answer
        if status.st_size == 0:
            return True
        with path.open("rb") as stream:
            head = stream.read(100)
    except OSError:
        return False
    if len(head) < 100 or head[:16] != b"SQLite format 3\x00" or head[18:20] != _WAL:
        return False
    page, mark = struct.unpack(">H", head[16:18])[0], struct.unpack(">I", head[68:72])[0]
    # The mark is written in the first transaction, which may still be in the -wal file.
    if page != PAGE_SIZE or mark not in (0, APPLICATION_ID):
        return False
    try:
        beside = os.path.exists(f"{path}-wal")  # noqa: PTH110 - a name too long is no error here
        options = "mode=ro" if beside else "mode=ro&immutable=1"
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True)
        ) as connection:
            return _is_ours(connection) and is_blank(connection) and not _is_written(connection)
    except (sqlite3.Error, OSError, ValueError):
        return False


def is_blank(connection: sqlite3.Connection) -> bool:
    """Whether a file has no record of a run in it, and nothing else besides."""
    stored = connection.execute("SELECT name FROM sqlite_master WHERE type != 'index'").fetchall()
    names = {name for (name,) in stored}
    if not names <= set(TABLES):
        return False
    return not any(
        connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()
        for name in _RECORDED
        if name in names
    )


def _is_ours(connection: sqlite3.Connection) -> bool:
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    # Without the mark it is a file that nobody has put anything into: one page, no table.
    return bool(mark == APPLICATION_ID or (mark == 0 and tables == 0 and pages <= 1))


def _is_written(connection: sqlite3.Connection) -> bool:
    info = {}
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'info'").fetchone():
        query = "SELECT key, value FROM info WHERE key IN ('writer', 'beat')"
        info = {key: from_json(value) for key, value in connection.execute(query)}
    return is_alive(info.get("writer"), info.get("beat"))
