"""Facts about a run that are known only after it was closed."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from nethook.errors import RunFileError
from nethook.runs.format.texts import for_file, to_json
from nethook.runs.writing.connection import Storage


def add_facts(path: Path, facts: Mapping[str, object]) -> None:
    """Writes facts into `info` of a run that is closed; those of the same names give way.

    Raises:
        RunFileError: the file is no run, or cannot be written.
    """
    storage = Storage(path.absolute(), resume=True)
    try:
        storage.connection.execute("BEGIN IMMEDIATE")
        storage.connection.executemany(
            "INSERT OR REPLACE INTO info VALUES (?, ?)",
            [(for_file(name), to_json(value)) for name, value in facts.items()],
        )
        storage.connection.execute("COMMIT")
        storage.publish(now=True)
    except sqlite3.Error as error:
        raise RunFileError(f"the run {str(path)!r} cannot be written: {error}") from error
    finally:
        storage.close()
