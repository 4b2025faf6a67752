"""Facts and events of a run that are known only after it was closed."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from nethook.errors import RunFileError
from nethook.runs.format.texts import for_file, to_json
from nethook.runs.secrets.masking import masked_text
from nethook.runs.writing.connection import Storage


def add_facts(path: Path, facts: Mapping[str, object]) -> None:
    """Writes facts into `info` of a run that is closed; those of the same names give way.

    Raises:
        RunFileError: the file is no run, or cannot be written.
    """
    _write(
        path,
        "INSERT OR REPLACE INTO info VALUES (?, ?)",
        [(for_file(name), to_json(value)) for name, value in facts.items()],
    )


def add_events(path: Path, events: Sequence[tuple[str, int, str]]) -> None:
    """Writes events into a run that is closed: of each its kind, its step and its message.

    Raises:
        RunFileError: the file is no run, or cannot be written.
    """
    _write(
        path,
        "INSERT INTO events (step, time, kind, address, message, data, repeats) "
        "VALUES (?, ?, ?, '', ?, '{}', 0)",
        [
            (step, time.time(), for_file(kind), for_file(masked_text(message)))
            for kind, step, message in events
        ],
    )


def _write(path: Path, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    storage = Storage(path.absolute(), resume=True)
    try:
        storage.connection.execute("BEGIN IMMEDIATE")
        storage.connection.executemany(statement, rows)
        storage.connection.execute("COMMIT")
        storage.publish(now=True)
    except sqlite3.Error as error:
        raise RunFileError(f"the run {str(path)!r} cannot be written: {error}") from error
    finally:
        storage.close()
