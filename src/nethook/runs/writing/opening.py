"""Opening a run for writing: the file, its tables, whose it is, what runs, and where it goes on."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nethook.errors import RunFileError, RunInUseError
from nethook.runs.format.owner import this_process
from nethook.runs.reading.sessions import last_finished_step
from nethook.runs.writing.connection import WAL_LIMIT, DiskError, Storage, may_pass, remove_run
from nethook.runs.writing.rank_steps import common_step
from nethook.runs.writing.resume import Model, begin_session, check_same_model
from nethook.runs.writing.store import Store


class OpenRun(NamedTuple):
    """A run that is open for writing.

    Attributes:
        earlier: the facts about the run as its last writer left them; none in a new run.
        sites: what the file had of each site: its kind, and what was known of it.
        next_step: the step that it begins or goes on with.
        dropped: the first and the last step whose earlier record was dropped for that, if any.
    """

    storage: Storage
    store: Store
    earlier: dict[str, Any]
    sites: Mapping[str, tuple[str, Any]]
    next_step: int
    dropped: tuple[int, int] | None


class Opening(NamedTuple):
    """How a run is opened: kept, so that it can be tried again when a full disk has room.

    Arguments:
        path: the file, of this rank.
        facts: what the run says of itself.
        resume: whether to go on in a run that is there.
        step: with which step; None for the one after the last that is kept.
        model: sites and shapes; a run that has others is not continued.
        vfs, wal_limit: as `Storage` takes them.
    """

    path: Path
    facts: Mapping[str, object]
    resume: bool = False
    step: int | None = None
    model: Model | None = None
    vfs: str | None = None
    wal_limit: int = WAL_LIMIT

    def open(self) -> OpenRun:
        """The open file; where that fails, nothing of it is left.

        Raises:
            DiskError: the disk is full or fails. Trying again later may succeed.
            RunFileError: it cannot be written, now or later.
        """
        storage = Storage(self.path, resume=self.resume, vfs=self.vfs, wal_limit=self.wal_limit)
        try:
            run = self._begin(storage)
            storage.publish(now=True)
        except BaseException as error:
            storage.close()
            if storage.made:
                remove_run(self.path)
            if may_pass(error) and not isinstance(error, RunFileError):
                raise DiskError(f"the run {str(self.path)!r} cannot be written: {error}") from error
            raise
        return run

    def _begin(self, storage: Storage) -> OpenRun:
        store = Store(storage.connection, this_process())
        try:
            earlier = store.claim()
        except RunInUseError as error:
            storage.made = False  # it is another's
            raise RunInUseError(f"{str(self.path)!r} is in use: {error}.") from None
        sites = store.sites()
        if self.model is not None:
            check_same_model(self.path, sites, self.model)
        step = self.step
        if step is None and self.resume and self.facts.get("world_size", 1) != 1:
            step = common_step(self.path, earlier, store.last_step)
        last = last_finished_step(earlier, store.last_step)
        next_step = begin_session(store, earlier, self.facts, step)
        if isinstance(totals := earlier.get("totals"), dict):
            totals["steps"] = store.steps()  # a writer that was killed had no time to say so
        store.commit()
        dropped = (next_step, last) if next_step <= last else None
        return OpenRun(storage, store, earlier, sites, next_step, dropped)


def words_of(error: BaseException) -> str:
    """What a disk says, without the path in front of it."""
    cause = error.__cause__ if isinstance(error, DiskError) else error
    if isinstance(cause, sqlite3.Error | OSError):
        return str(cause)
    return str(error)
