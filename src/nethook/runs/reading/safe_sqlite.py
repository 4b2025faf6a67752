"""Reading a file that may come from a stranger: read-only, limited in time, size and schema."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from nethook.errors import NoSuchRunError, NotARunError, RunFileError
from nethook.files import exists, is_file
from nethook.runs.format.schema import MAX_BLOB
from nethook.runs.format.texts import clean, from_json
from nethook.runs.format.validate import check_header, check_schema
from nethook.runs.paths import LONGEST_PATH
from nethook.runs.reading.open_files import OpenFiles

TIMEOUT: Final = 20.0
"""Seconds that one query may take."""

_STEPS: Final = 5000  # of SQLite's machine between two looks at the clock
_LIMITS: Final = (
    (sqlite3.SQLITE_LIMIT_LENGTH, MAX_BLOB),  # of a text, a blob, a row
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 20_000),
    (sqlite3.SQLITE_LIMIT_COLUMN, 64),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 32),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 4),
    (sqlite3.SQLITE_LIMIT_VDBE_OP, 20_000),
    (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 8),
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
)

# What damaged files make of Python's sqlite3, besides its own errors: a message of SQLite's that
# quotes the damage is not UTF-8, a number does not fit.
_FAILURES: Final = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, OverflowError)


class GuardedFile:
    """A run file, open for reading. Each query is a transaction of its own, and a short one.

    While a run is written it has a -wal file beside it, and SQLite shares it with the writer.
    Without one nobody writes, and the file is read as it is (`immutable`): that leaves nothing
    behind, and works on read-only media. Which of the two holds is looked at before every query,
    and whether the file is still the same one (a run on a network is replaced as it grows).

    `files` limits how many are open: one that rests is opened again by its next query. What it is
    was checked then, and is not checked again unless the file has changed.
    """

    def __init__(
        self, path: Path, timeout: float = TIMEOUT, files: OpenFiles | None = None
    ) -> None:
        self.path = path
        self._files = files
        self._real = self._wal = path
        self._found: tuple[int, int] | None = None  # the file that `_real` was the path of
        self._timeout = timeout
        self._deadline = 0.0
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened_as: tuple[object, ...] = ()
        with self._lock:
            self._connect()

    def rows(
        self, query: str, values: Sequence[object] = (), *, most: int
    ) -> list[tuple[Any, ...]]:
        """All rows of a query; a file that has more than `most` is refused."""
        with self._lock:
            for _ in range(5):
                connection = self._connect()
                try:
                    self._deadline = time.monotonic() + self._timeout
                    rows = connection.execute(f"{query} LIMIT {most + 1}", values).fetchall()
                except _FAILURES as error:
                    if self._state() != self._opened_as:
                        continue  # the file changed under us: what was read means nothing
                    raise self._explained(error) from None
                if self._opened_as[0] != "immutable" or self._state() == self._opened_as:
                    break
        if len(rows) > most:
            raise NotARunError(f"{str(self.path)!r} has more than {most:,} rows where no run does.")
        return rows

    def facts(self, *names: str) -> dict[str, Any]:
        """Some facts about what ran, by name, without reading the others."""
        marks = ", ".join("?" * len(names))
        rows = self.rows(f"SELECT key, value FROM info WHERE key IN ({marks})", names, most=64)
        return {key: from_json(value) for key, value in rows}

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._disconnect()

    def rest(self) -> bool:
        """Close the file until the next query, unless one is under way; whether it is closed."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._disconnect()
        finally:
            self._lock.release()
        return True

    def __del__(self) -> None:
        # A run that nobody closed: SQLite's own object warns when it is dropped open.
        if getattr(self, "_connection", None) is not None:
            self._disconnect()

    def _state(self) -> tuple[object, ...]:
        """How the file is to be opened, and what must stay as it is for that to hold."""
        try:
            stat = self.path.stat()
        except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a NUL in the name
            raise NoSuchRunError(f"there is no run {str(self.path)!r}.") from None
        except OSError as error:
            raise _unreadable(self.path, error) from None
        found = stat.st_dev, stat.st_ino
        if found != self._found:
            # What was named may be a link; the other files lie beside what it leads to.
            self._real = Path(os.path.realpath(self.path))
            self._wal = Path(f"{self._real}-wal")
            self._found = found
        # SQLite would wait for a pipe, and a folder or a link was not made by a writer.
        if is_file(self._wal, links=False):
            return "shared", *found
        return "immutable", *found, stat.st_mtime_ns, stat.st_size

    def _connect(self) -> sqlite3.Connection:
        state = self._state()
        if self._connection is not None:
            if state == self._opened_as:
                self._note_use()
                return self._connection
            self._disconnect()
            state = self._state()  # a link may lead elsewhere by now
        # It has rested, and nobody has written to it. Of a thousand ranks each does so many times.
        known = state == self._opened_as and state[0] == "immutable"
        if not is_file(self.path):  # a folder, a pipe that would never answer, a device
            raise NotARunError(f"{str(self.path)!r} is not a file.")
        try:
            if not known:
                check_header(self.path)
        except OSError as error:
            if isinstance(error, RunFileError):
                raise
            raise _unreadable(self.path, error) from None
        if len(os.fsencode(self._real)) > LONGEST_PATH:
            raise RunFileError(
                f"{str(self.path)!r} has a path of more than {LONGEST_PATH} bytes, which SQLite "
                "does not open: move it to a folder that is less deep."
            )
        try:
            if state[0] == "immutable":
                self._connection = self._open(self._real, "mode=ro&immutable=1", known)
            else:
                self._connection = self._open_shared()
        except _FAILURES as error:
            raise self._explained(error) from None
        self._opened_as = state
        self._note_use()
        return self._connection

    def _note_use(self) -> None:
        if self._files is not None:
            self._files.use(self)

    def _open_shared(self) -> sqlite3.Connection:
        # SQLite opens these as well, and would wait for a pipe.
        others = [Path(f"{self._real}{end}") for end in ("-shm", "-journal")]
        if all(is_file(other, links=False) or not exists(other) for other in others):
            try:
                return self._open(self._real, "mode=ro")
            except sqlite3.OperationalError:
                # Read-only media or a full disk, with the -wal file of a run that was cut off:
                # SQLite wants to write beside it. A copy has room for that.
                pass
        try:
            return self._open(self._copy(), "mode=ro")
        except OSError as error:
            if isinstance(error, RunFileError):
                raise
            raise _unreadable(self.path, error) from None

    def _copy(self) -> Path:
        """A copy of the file and of its -wal file, in a folder of our own."""
        folder = Path(tempfile.mkdtemp(prefix="nethook-read-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        parts = [(Path(f"{self._real}{end}"), folder / f"run.db{end}") for end in ("", "-wal")]
        # A file that is mostly holes says that it is far larger than what it takes.
        if sum(file.stat().st_size for file, _ in parts) > shutil.disk_usage(folder).free:
            raise OSError(
                errno.ENOSPC, f"there is no room for a copy of it in {str(folder.parent)!r}"
            )
        for file, copy in parts:
            shutil.copyfile(file, copy)
        return folder / "run.db"

    def _open(self, path: Path, options: str, known: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{path.as_uri()}?{options}",
            uri=True,
            isolation_level=None,
            timeout=5.0,
            check_same_thread=False,  # the lock sees to that
        )
        try:
            for limit, value in _LIMITS:
                connection.setlimit(limit, value)
            connection.set_progress_handler(self._too_late, _STEPS)
            connection.text_factory = _text
            self._deadline = time.monotonic() + self._timeout
            for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("PRAGMA mmap_size = 0")  # a truncated file would kill the process
            if not known:
                check_schema(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._found = None

    def _too_late(self) -> int:
        return int(time.monotonic() > self._deadline)

    def _explained(self, error: Exception) -> RunFileError:
        """SQLite's words in those of a person who wants to read a run."""
        said = clean(str(error))
        if "interrupted" in said:
            return RunFileError(
                f"{str(self.path)!r}: a query took longer than {self._timeout:g} seconds, and was "
                "stopped."
            )
        if isinstance(error, sqlite3.OperationalError) and "locked" in said:
            return RunFileError(f"{str(self.path)!r} is locked by another program: {said}.")
        return NotARunError(f"{str(self.path)!r} is damaged or not a run of nethook: {said}.")


def _unreadable(path: Path, error: OSError) -> RunFileError:
    return RunFileError(f"{str(path)!r} cannot be read: {error.strerror}.")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
