"""Is this file a run of nethook, of a version we know, with nothing in it that does not belong?"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from nethook.errors import NotARunError
from nethook.runs.format.schema import APPLICATION_ID, SINCE, TABLES, VERSION
from nethook.runs.format.texts import clean

_MAGIC = b"SQLite format 3\x00"


def check_header(path: Path) -> None:
    """Refuse what is no SQLite file before SQLite reads it, with a message that says what it is."""
    with path.open("rb") as stream:
        head = stream.read(100)
    if not head:
        raise NotARunError(f"{str(path)!r} is empty: no run was ever written to it.")
    if head[:16] != _MAGIC or len(head) < 100:
        raise NotARunError(
            f"{str(path)!r} is not a run of nethook: it does not begin as a SQLite file does."
        )


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is foreign, newer, or has anything besides the tables of a run.

    Triggers, views, generated columns and the like are code that SQLite would run on reading or
    writing; in a file from a stranger there is no place for them.
    """
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise NotARunError(
            f"{str(path)!r} is a SQLite file, but not a run of nethook (which are written by "
            "nethook.watch)."
        )
    version = _pragma(connection, "user_version")
    if version > VERSION:
        raise NotARunError(
            f"{str(path)!r} was written by a newer nethook: it has version {version} of the run "
            f"file, and this nethook reads up to {VERSION}. Update it: pip install -U nethook."
        )
    if version < 1:
        raise NotARunError(f"{str(path)!r} has no version that nethook ever wrote ({version}).")
    tables = {}
    query = "SELECT type, name, sql FROM sqlite_master LIMIT 200"
    for kind, name, sql in connection.execute(query).fetchall():
        if kind == "index" and sql is None and str(name).startswith("sqlite_autoindex_"):
            continue  # what UNIQUE and PRIMARY KEY make
        if kind != "table" or name not in TABLES:
            raise NotARunError(
                f"{str(path)!r} has a {clean(str(kind))} {clean(str(name))[:80]!r}, which no run "
                "of nethook has: it is refused."
            )
        tables[name] = sql
    for name, sql in TABLES.items():
        if name not in tables and version < SINCE.get(name, 1):
            continue
        # Many ranks have many files: what stands there letter by letter needs no closer look.
        if name not in tables or (
            tables[name] != sql and _spaceless(tables[name]) != _spaceless(sql)
        ):
            raise NotARunError(
                f"{str(path)!r} does not have the table {name!r} as nethook writes it: it is "
                "damaged or was changed, and is refused."
            )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return int(value)


def _spaceless(sql: object) -> str:
    return re.sub(r"\s+", " ", str(sql))
