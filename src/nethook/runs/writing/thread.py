"""The writer thread: takes what is waiting, writes it, and survives what disks do."""

from __future__ import annotations

import sqlite3
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from nethook.errors import RunFileError
from nethook.runs import names
from nethook.runs.writing.connection import DiskError, Storage
from nethook.runs.writing.listening import Listener
from nethook.runs.writing.opening import Opening, OpenRun, words_of
from nethook.runs.writing.queue import Delivery, WindowQueue
from nethook.runs.writing.store import Event, NewSeries, Store

FLUSH: Final = 1.0
"""Seconds between two transactions."""

_FIRST_PAUSE: Final = 0.5  # between two tries on a disk that is full, doubled each time ...
_LONGEST_PAUSE: Final = 60.0  # ... up to this


class LostError(Exception):
    """The file is gone, or another's: there is nothing left to write to."""


class Health:
    """How the writing goes; the first problem is warned about once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._said = False
        self.problem: str | None = None
        self.seconds = 0.0  # of the processor, that the writer's thread has used

    def fail(self, problem: str, *, ends: bool) -> None:
        """Writing failed: for now, or for good."""
        self.problem = problem
        if self._said:
            return
        self._said = True
        rest = "nothing more is recorded" if ends else "recording goes on when it can"
        # With warnings as errors this raises, here in the writer's thread: nobody else's business.
        with suppress(Warning):
            warnings.warn(
                f"nethook cannot write {str(self._path)!r} ({problem}): training is not affected; "
                f"{rest}.",
                RuntimeWarning,
                stacklevel=2,
            )


def write_until_stopped(
    run: OpenRun | Opening,
    queue: WindowQueue,
    health: Health,
    flush_every: float,
    listener: Listener | None = None,
) -> None:
    """The body of the writer thread; `run` is open, or could not be opened so far."""
    storage: Storage | None = None
    try:
        opened = _open_at_last(run, queue) if isinstance(run, Opening) else run
        storage = opened.storage
        # A run is full of infinities and NaN: numpy has nothing to say about them here.
        with np.errstate(all="ignore"):
            _Loop(storage, opened.store, queue, health, flush_every, listener).run()
    except LostError as error:
        health.fail(str(error), ends=True)
    except Exception as error:  # a mistake of ours must not print a traceback into a training run
        health.fail(f"{type(error).__name__}: {error}", ends=True)
    finally:
        with queue.changed:
            queue.stopped = True
            queue.changed.notify_all()
        if storage is not None:
            storage.close(keep=health.problem is not None)


def _open_at_last(run: Opening, queue: WindowQueue) -> OpenRun:
    """Opens a run on a disk that was full when it began, as soon as there is room."""
    pause = _FIRST_PAUSE
    while True:
        if not queue.stopping:
            queue.sleep(pause)
        stopping = queue.stopping
        try:
            return run.open()
        except DiskError as error:
            if stopping:
                raise LostError(words_of(error)) from None
        except RunFileError as error:
            raise LostError(str(error)) from None
        pause = min(2 * pause, _LONGEST_PAUSE)
        with queue.changed:  # nobody waits for what cannot be written
            queue.flushed = queue.flushes
            queue.changed.notify_all()


class _Loop:
    """Take, write, commit; after a failure wait, and try again."""

    def __init__(
        self,
        storage: Storage,
        store: Store,
        queue: WindowQueue,
        health: Health,
        flush_every: float,
        listener: Listener | None,
    ) -> None:
        self._storage = storage
        self._store = store
        self._queue = queue
        self._health = health
        self._every = flush_every
        self._listener = listener
        self._committed = time.monotonic()
        self._taken: list[Delivery] = []  # since the last commit
        self._to_undo = False  # whether a failed transaction is still to be undone
        self._retry_at = 0.0
        self._pause = _FIRST_PAUSE

    def run(self) -> None:
        """Until the writer is closed."""
        stopping = False
        while not stopping:
            stopping, flushes = self._wait()
            try:
                self._work(now=stopping or flushes > self._queue.flushed, last=stopping)
            except (sqlite3.OperationalError, OSError) as error:
                if isinstance(error, RunFileError):
                    raise LostError(str(error)) from None
                self._fail(str(error))
            self._health.seconds = time.thread_time()
            with self._queue.changed:
                self._queue.flushed = max(self._queue.flushed, flushes)
                self._queue.changed.notify_all()

    def _wait(self) -> tuple[bool, int]:
        """Sleep until there is something to do; whether to end, and the flushes asked for."""
        queue = self._queue
        until = max(self._retry_at, self._committed + self._every)
        while not (queue.stopping or queue.flushes > queue.flushed):
            now = time.monotonic()
            if now >= until or (now >= self._retry_at and queue.waiting()):
                break
            queue.sleep(until - now)
        return queue.stopping, queue.flushes

    def _work(self, *, now: bool, last: bool) -> None:
        """Write what is waiting; commit when it is time, or now."""
        if not now and time.monotonic() < self._retry_at:
            return
        if self._to_undo:
            self._undo()
        lost = self._storage.lost()
        if lost and self._storage.scratch is None:
            raise LostError(lost)
        now = now or lost is not None  # scratch is still there: what there is goes into it
        if not last and self._storage.held_back():
            self._fail("a program that reads it keeps its -wal file from being taken in")
            return
        while now or self._queue.waiting() or self._is_time():
            # The transaction first: where it cannot begin, nothing has been taken out.
            self._store.begin()
            delivery = self._queue.take()
            self._taken.append(delivery)
            self._write(delivery)
            more = self._queue.waiting()
            if self._is_time() or (now and not more):
                if last and not more:
                    self._store.put_info({"finished": time.time()})
                self._store.commit()
                self._taken.clear()
                self._committed = time.monotonic()
                self._recovered()
                if not lost:
                    self._storage.publish(now=now)
                elif not more:
                    raise LostError(lost)
                if not more:
                    return

    def _is_time(self) -> bool:
        return time.monotonic() - self._committed >= self._every

    def _write(self, delivery: Delivery) -> None:
        store = self._store
        for entry in delivery.catalogue:
            if isinstance(entry, NewSeries):
                store.add_series(entry)
            else:
                store.add_site(entry)
        if self._listener is not None:
            self._tell(self._listener, delivery)
        for window in filter(None, (delivery.window,)):
            store.add_window(window)
            self._queue.give_back(window)
        for window in delivery.provisional:
            store.add_window(window, closed=False)
            self._queue.give_back(window)
        for kind, note in delivery.notes:
            if kind == "scalar":
                store.add_scalar(*note)
            elif kind == "loss":
                store.add_loss(note)
            elif kind == "event":
                store.add_event(note)
            elif kind == "snapshot":
                store.add_snapshot(note)
            else:
                store.put_info(note)
        if delivery.findings is not None:
            store.put_findings(delivery.findings)
        if delivery.dropped:
            self._say("notes-dropped", f"{delivery.dropped:,} scalars or events were not kept")

    def _tell(self, listener: Listener, delivery: Delivery) -> None:
        try:
            listener.heard(delivery)
        except Exception as error:  # a mistake of ours; sinks guard their own
            self._listener = None
            self._say(names.SINK_FAILED, f"sinks are off: {type(error).__name__}: {error}")

    def _fail(self, problem: str) -> None:
        """Writing did not succeed: go back to the last commit, and try again later."""
        self._health.fail(problem, ends=False)
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        with suppress(sqlite3.OperationalError):  # a disk that fails may fail here, too
            self._undo()

    def _undo(self) -> None:
        """Go back to the last commit; what had been taken out since waits again."""
        self._to_undo = True
        self._store.rollback()
        self._to_undo = False
        catalogue = [entry for delivery in self._taken for entry in delivery.catalogue]
        # Snapshots are large: they are not held on to.
        notes = [
            note for delivery in self._taken for note in delivery.notes if note[0] != "snapshot"
        ]
        self._taken.clear()
        self._queue.put_back(catalogue, notes)

    def _recovered(self) -> None:
        """A commit succeeded; if it had not for a while, it is recorded as an event."""
        if self._health.problem is None:
            return
        problem, self._health.problem = self._health.problem, None
        self._retry_at, self._pause = 0.0, _FIRST_PAUSE
        self._store.begin()
        self._say("recording-interrupted", f"nothing could be written for a while: {problem}")
        self._store.commit()

    def _say(self, kind: str, message: str) -> None:
        step = self._store.last_step
        self._store.add_event(Event(step, time.time(), kind, "", message, {}))
