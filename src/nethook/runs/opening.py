"""Opening a run for writing: the file, its tables, whose it is, and what runs."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nethook.errors import RunFileError, RunInUseError
from nethook.runs.owner import this_process
from nethook.runs.storage import WAL_LIMIT, DiskError, Storage, may_pass, remove_run
from nethook.runs.store import Event, Store


@dataclass(frozen=True)
class Opening:
    """How a run is opened: kept, so that it can be tried again when a full disk has room.

    Arguments:
        path: the file, of this rank.
        facts: what the run says of itself.
        resume, vfs, wal_limit: as `Storage` takes them.
    """

    path: Path
    facts: Mapping[str, object]
    resume: bool = False
    vfs: str | None = None
    wal_limit: int = WAL_LIMIT

    def open(self) -> tuple[Storage, Store]:
        """The open file; where that fails, nothing of it is left.

        Raises:
            DiskError: the disk is full or fails. Trying again later may succeed.
            RunFileError: it cannot be written, now or later.
        """
        continued = self.resume and self.path.exists()
        storage = Storage(
            self.path, resume=self.resume, vfs=self.vfs, wal_limit=self.wal_limit
        )  # fmt: skip
        try:
            store = Store(storage.connection, this_process())
            self._begin(store, continued=continued)
            storage.publish(now=True)
        except BaseException as error:
            storage.close()
            if not continued:
                remove_run(self.path)
            if may_pass(error) and not isinstance(error, RunFileError):
                raise DiskError(f"the run {str(self.path)!r} cannot be written: {error}") from error
            raise
        return storage, store

    def _begin(self, store: Store, *, continued: bool) -> None:
        try:
            store.claim()
        except RunInUseError as error:
            raise RunInUseError(f"{str(self.path)!r} is in use: {error}.") from None
        started = {} if continued else {"started": time.time()}
        store.begin()
        store.put_info({**self.facts, **started})
        if continued:
            message = f"continued after step {store.last_step}"
            now = time.time()
            store.add_event(Event(store.last_step + 1, now, "resumed", "", message, {}))
        store.commit()


def words_of(error: BaseException) -> str:
    """What a disk says, without the path in front of it."""
    cause = error.__cause__ if isinstance(error, DiskError) else error
    if isinstance(cause, sqlite3.Error | OSError):
        return str(cause)
    return str(error)
