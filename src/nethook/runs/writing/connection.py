"""The connection that a run is written through, on whatever disk there is.

On a local disk the run is written in place, in SQLite's WAL mode: readers never wait for the writer
nor it for them. On a network, or where WAL is refused, it is written to a scratch folder of this
machine and published: a copy beside the target, which then replaces it in one step.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from nethook.errors import NotARunError, RunFileError
from nethook.files import is_file, is_full, not_a_file, replacing
from nethook.runs.format.schema import APPLICATION_ID, PAGE_SIZE, TABLES, VERSION
from nethook.runs.format.validate import check_header, check_schema
from nethook.runs.stubs import is_stub
from nethook.runs.writing.filesystems import on_network

WAL_LIMIT: Final = 64 << 20
"""Bytes of the -wal file at which the writer waits until a reader that holds it back lets go."""

PUBLISH: Final = 5.0
"""Seconds between two publications; longer where one takes long."""


_PASSING: Final = frozenset(
    # Of SQLite's results: a full disk, one that fails, and no memory for a page.
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
)


class WalRefusedError(Exception):
    """This disk cannot have a WAL."""


class DiskError(RunFileError):
    """The disk is full or fails: nothing is wrong with the path, and it may pass."""


def may_pass(error: BaseException) -> bool:
    """Whether an error is that of a disk which is full or fails, and not that of a path."""
    if isinstance(error, sqlite3.Error):
        # The lowest byte is the kind of failure, the others say where it came from.
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING
    return isinstance(error, DiskError) or is_full(error)


class Storage:
    """An open run file, for writing.

    Arguments:
        path: the run file. It does not exist, has nothing in it, or `resume` is true.
        resume: whether to continue what is there.
        vfs: the name of SQLite's layer for files; None is its usual one.
        wal_limit: see WAL_LIMIT.
    """

    def __init__(
        self,
        path: Path,
        *,
        resume: bool = False,
        vfs: str | None = None,
        wal_limit: int = WAL_LIMIT,
    ) -> None:
        self.path = path
        self.scratch: Path | None = None
        self._wal_limit = wal_limit
        self._published = 0.0
        self._wait = PUBLISH
        # A stub is opened as it is, and never removed: its maker may be alive, and about to write.
        stub = is_stub(path)
        existing = (resume or stub) and path.exists()
        self.made = not existing
        """Whether this made the file."""
        try:
            if not existing:
                # Where the disk was full there may be no folder yet.
                path.parent.mkdir(parents=True, exist_ok=True)
                # Nobody else can have made it in between, and a folder that is read-only says so.
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
            elif kind := not_a_file(path):  # SQLite would wait for a pipe
                raise NotARunError(
                    f"{str(path)!r} is {kind} and not a run: it cannot be continued."
                )
            elif not os.access(path, os.W_OK):
                raise PermissionError(13, "the file is read-only")
            if existing and not stub:
                check_header(path)
            try:
                if on_network(path.parent):
                    raise WalRefusedError
                self.connection = _connect(path, existing=existing and not stub, vfs=vfs)
            except WalRefusedError:
                self._use_scratch(existing=existing and not stub)
        except (OSError, sqlite3.Error) as error:
            # A lock is another's, who found the file empty and took it over.
            if self.made and not isinstance(error, FileExistsError) and "locked" not in str(error):
                remove_run(path)
            if isinstance(error, RunFileError):
                raise
            failure = DiskError if may_pass(error) else RunFileError
            raise failure(f"the run {str(path)!r} cannot be written: {error}") from error
        self._identity = _identity(path)

    def _use_scratch(self, *, existing: bool) -> None:
        folder = Path(tempfile.mkdtemp(prefix="nethook-"))
        self.scratch = folder / self.path.name
        try:
            if existing:
                for end in ("", "-wal"):  # what a writer that was killed left there belongs to it
                    if is_file(file := Path(f"{self.path}{end}"), links=end == ""):
                        shutil.copyfile(file, f"{self.scratch}{end}")
            self.scratch.touch()
            self.connection = _connect(self.scratch, existing=existing, vfs=None)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @property
    def file(self) -> Path:
        """The file that SQLite writes: the target, or the scratch file."""
        return self.scratch or self.path

    def lost(self) -> str | None:
        """Why writing makes no sense any more: the file was removed or replaced by another."""
        if self.scratch is None:
            # SQLite would write on into a file that has no name, and nobody would ever read it.
            identity = _identity(self.path)
            if identity is None:
                return f"{str(self.path)!r} was removed"
            if identity != self._identity:
                return f"{str(self.path)!r} was replaced by another file"
        elif not self.path.parent.is_dir():
            kept = f"the run so far is in {str(self.scratch)!r}"
            return f"the folder {str(self.path.parent)!r} was removed, and {kept}"
        return None

    def held_back(self) -> bool:
        """Whether a reader keeps the -wal file from being taken in, and it is large already.

        Asked between transactions only: inside one the answer would always be yes.
        """
        if self.connection.in_transaction:
            return False
        wal = Path(f"{self.file}-wal")
        with suppress(OSError):
            if wal.stat().st_size > self._wal_limit:
                busy = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                return bool(busy)
        return False

    def publish(self, *, now: bool = False) -> None:
        """Where the run is in scratch: put what is committed in the place of the target.

        A publication copies the whole run, so it is made every 5 seconds at most, and takes no more
        than a twentieth of the time.
        """
        if self.scratch is None or (not now and time.monotonic() - self._published < self._wait):
            return
        started = time.monotonic()
        with (
            replacing(self.path, durable=True) as copy,
            closing(sqlite3.connect(copy, isolation_level=None)) as target,
        ):
            self.connection.backup(target)
            # Without this the copy is marked as WAL, and a network has none.
            target.execute("PRAGMA journal_mode = DELETE")
        self._published = time.monotonic()
        self._wait = max(PUBLISH, 20 * (self._published - started))

    def close(self, *, keep: bool = False) -> None:
        """Close the file; scratch goes, unless it is to be kept because it was not published."""
        with suppress(sqlite3.Error):
            self.connection.close()
        if self.scratch is not None and not keep:
            shutil.rmtree(self.scratch.parent, ignore_errors=True)


def remove_run(path: Path) -> None:
    """Takes away what there is of a run that could not be begun."""
    for end in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):  # a folder in the place of one of them was there before
            Path(f"{path}{end}").unlink(missing_ok=True)


def _connect(path: Path, *, existing: bool, vfs: str | None) -> sqlite3.Connection:
    option = f"&vfs={vfs}" if vfs else ""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw{option}",
        uri=True,
        isolation_level=None,
        timeout=5.0,
        check_same_thread=False,  # made here, then handed to the writer thread, which keeps it
    )
    try:
        if existing or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            check_schema(connection, path)
        else:
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise WalRefusedError
            # A WAL that is granted and then cannot be used fails at its first transaction.
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            name = getattr(error, "sqlite_errorname", "")
            # Shared memory that cannot be had is what a disk without WAL says, also by an IOERR.
            lacks_wal = name.startswith("SQLITE_IOERR_SHM") or name.endswith("LOCK")
            if may_pass(error) and not lacks_wal:
                raise
            if "lock" in str(error) and "protocol" not in str(error):
                raise
            raise WalRefusedError from error
        if not existing:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        if connection.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in TABLES.values():  # of an older file, those that are new
            connection.execute(statement.replace("TABLE", "TABLE IF NOT EXISTS", 1))
        connection.execute("COMMIT")
        # After a power cut the last transactions may be missing, and the file is whole.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA wal_autocheckpoint = 1000")
        connection.execute(f"PRAGMA journal_size_limit = {16 << 20}")
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
