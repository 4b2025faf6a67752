"""Writing a run: what the training thread calls. Nothing here waits for a disk."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nethook.errors import OptionError
from nethook.runs.format.schema import MAX_SERIES, MAX_SNAPSHOT, MAX_UNITS, PHASES
from nethook.runs.launch import launch
from nethook.runs.paths import new_run_path
from nethook.runs.reading.taken import is_taken
from nethook.runs.writing.connection import WAL_LIMIT, DiskError
from nethook.runs.writing.listening import Listener, say_into
from nethook.runs.writing.opening import Opening, words_of
from nethook.runs.writing.provenance import about_this_process
from nethook.runs.writing.queue import CAPACITY, WindowQueue
from nethook.runs.writing.resume import Model
from nethook.runs.writing.store import (
    Event,
    LossRecord,
    NewSeries,
    NewSite,
    NewSnapshot,
    layout_info,
)
from nethook.runs.writing.thread import FLUSH, Health, write_until_stopped
from nethook.stats.sheet import Layout, Sheet, layout_of

PROVISIONAL: Final = 5.0
"""Seconds between two provisional writes of a window that is still open."""


class RunWriter:
    """A run file that is being written, by a thread of its own.

        writer = RunWriter("runs/mnist.db")
        writer.add_site("conv1", "Conv2d", {"source": "train.py:12"})
        row = writer.add_series("conv1", "outputs", units=20)
        window = writer.window("train")
        clock = WindowClock()
        for step in …:
            …                             # kernels write into window.rows[row], and so on
            window.add_step(step)
            if clock.ends_with(step):
                window = writer.submit(window)
                clock.open(step + 1)
            elif writer.provisional_due:
                writer.submit_provisional(window)
        writer.close(window)

    Making one raises when the path is wrong. After that nothing raises: a disk that is full, now or
    later, or a lost folder costs records, one warning says so, and `problem` keeps it.

    Arguments:
        path: where to; `{time}` in it becomes the time. An existing run is refused ...
        resume: ... or continued.
        step: with which step it goes on; None for the one after the last that is kept.
        model: sites and shapes; a run that has others is not continued.
        rank, world_size: of torch.distributed; rank r > 0 writes `NAME.rank{r}.db`.
        info: more facts about the run, as plain data.
        flush_every: seconds between two transactions.
        capacity: windows that may wait; when there are more, they merge.
        listener: hears, on the writer's thread, what is written.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        resume: bool = False,
        step: int | None = None,
        model: Model | None = None,
        rank: int = 0,
        world_size: int = 1,
        info: Mapping[str, object] | None = None,
        flush_every: float = FLUSH,
        capacity: int = CAPACITY,
        vfs: str | None = None,
        wal_limit: int = WAL_LIMIT,
        listener: Listener | None = None,
    ) -> None:
        if not 0 <= rank < world_size:
            raise OptionError(
                f"`rank` must be from 0 to below `world_size` ({world_size}); got {rank}."
            )
        self.path = new_run_path(
            path, rank=rank, world_size=world_size, resume=resume, is_taken=is_taken
        )
        self._health = Health(self.path)
        opening = Opening(
            self.path,
            {
                **about_this_process(),
                **(info or {}),
                "rank": rank,
                "world_size": world_size,
                "launch": launch().identity,
                "layout": layout_info(),
            },
            resume=resume,
            step=step,
            model=model,
            vfs=vfs,
            wal_limit=wal_limit,
        )
        opened = None
        try:
            opened = opening.open()
        except DiskError as error:
            if resume and self.path.exists():
                raise  # where it goes on is in the file
            self._health.fail(words_of(error), ends=False)  # the thread tries again
        self.earlier: dict[str, Any] = opened.earlier if opened else {}
        """The facts about the run as its last writer left them; none in a new run."""
        self.earlier_sites: Mapping[str, tuple[str, Any]] = opened.sites if opened else {}
        """What the file had of each site: its kind, and what was known of it."""
        self.next_step = opened.next_step if opened else step or 0
        """The step that a run which is continued goes on with; 0 for a new one."""
        self.dropped = opened.dropped if opened else None
        """The first and the last step whose earlier record was dropped to go on, if any."""
        self._series = dict(opened.store.series) if opened else {}
        self._units = list(opened.store.basis.units) if opened else []
        self._layout = layout_of(self._units)
        self._queue = WindowQueue(capacity)
        if listener is not None:
            listener.opened(self.path, dict(self._series), say_into(self._queue))
        self._provisional = time.monotonic()
        self._pid = os.getpid()
        self._thread = threading.Thread(
            # The thread holds the connection, and not this object: a child that is forked gets a
            # copy of this object but not of the thread, and so can never close what is not its own.
            target=write_until_stopped,
            args=(opened or opening, self._queue, self._health, flush_every, listener),
            name="nethook-writer",
            daemon=True,
        )
        self._thread.start()
        # When a program ends, or drops the writer, without closing it, the rest is still written.
        self._finish = weakref.finalize(self, _stop, self._queue, self._thread, self._pid, 30.0)

    # The catalogue

    def add_site(
        self, address: str, kind: str = "", info: Mapping[str, object] | None = None
    ) -> None:
        """Keep a site of the model: its address, its type, and plain data about it."""
        if self._mine():
            self._queue.put_catalogue(NewSite(address, kind, dict(info or {})))

    def add_series(
        self,
        address: str,
        quantity: str,
        *,
        units: int = 0,
        info: Mapping[str, object] | None = None,
    ) -> int:
        """The row of a series in every window from now on; a known series keeps its row.

        More than 65,536 units are too many to keep a bit for each: such a series has none.
        """
        existing = self._series.get((address, quantity))
        if existing is not None:
            return existing
        if len(self._units) >= MAX_SERIES:
            raise OptionError(f"A run has room for {MAX_SERIES:,} series, and this is one more.")
        row = len(self._units)
        units = units if 0 <= units <= MAX_UNITS else 0
        if self._mine():
            self._queue.put_catalogue(NewSeries(row, address, quantity, units, dict(info or {})))
        # Last: an interrupt before this leaves a series that is added again, with the same row.
        self._series[address, quantity] = row
        self._units.append(units)
        return row

    # Windows

    @property
    def layout(self) -> Layout:
        """The series that there are."""
        if len(self._layout) != len(self._units):
            self._layout = layout_of(self._units)
        return self._layout

    def window(self, phase: str = "train", *, rows: int | None = None) -> Sheet:
        """An empty window, with a row for every series there is, or with so many rows."""
        if phase not in PHASES:
            raise OptionError(f"`phase` must be one of {', '.join(PHASES)}; got {phase!r}.")
        return self._queue.empty(self.layout, phase, rows)

    def widen(self, window: Sheet) -> Sheet:
        """The same window with a row for every series that was added since it was made."""
        return window if window.layout is self.layout else window.widened(self.layout)

    def hand_over(self, window: Sheet, why: str = "") -> bool:
        """Hand a window over; False when the writer is behind, and it stays with its owner.

        One without steps is taken only as the last, for the histograms of those before it.
        """
        if not self._mine() or (window.steps == 0 and why != "end"):
            return False
        window.why = why
        if not self._queue.put(window):
            return False
        self._provisional = time.monotonic()
        return True

    def submit(self, window: Sheet, why: str = "") -> Sheet:
        """Hand a window over, and get the one to fill next.

        When the writer is behind (a slow disk), the same window comes back as it is: the steps that
        follow are folded into it, and two windows have become one. That costs nothing and loses
        nothing but resolution.
        """
        phase = window.phase
        return self.window(phase) if self.hand_over(window, why) else self.widen(window)

    @property
    def waiting(self) -> int:
        """How many windows wait for the writer thread."""
        return self._queue.queued()

    @property
    def provisional_due(self) -> bool:
        """Whether the open window should be shown to readers as it is."""
        return time.monotonic() - self._provisional >= PROVISIONAL

    def submit_provisional(self, window: Sheet) -> None:
        """Have the open window written as it is now; it stays open, and with its owner."""
        self._provisional = time.monotonic()
        if window.steps and self._mine():
            self._queue.put_provisional(window)

    # Everything else

    def log(self, name: str, value: float, step: int, *, keep: int = 0) -> None:
        """One point of a scalar; with `keep` only that many of the last points stay in the file."""
        self.log_points(name, [(step, time.time(), value)], keep=keep)

    def log_points(self, name: str, points: list[tuple[float, ...]], *, keep: int = 0) -> None:
        """Points of a scalar, each with its step, its time and its value, and what else it has."""
        if self._mine():
            self._queue.put_note("scalar", (name, points, keep))

    def loss(self, name: str, step: int, data: Mapping[str, object], phase: str = "train") -> None:
        """How a loss was made: its kind, chain, shapes and what else is known, as plain data."""
        if self._mine():
            self._queue.put_note("loss", LossRecord(name, step, phase, dict(data)))

    def event(
        self,
        kind: str,
        step: int,
        message: str = "",
        address: str = "",
        data: Mapping[str, object] | None = None,
    ) -> None:
        """Something that happened at a step."""
        if self._mine():
            event = Event(step, time.time(), kind, address, message, dict(data or {}))
            self._queue.put_note("event", event)

    def snapshot(
        self, address: str, step: int, values: npt.NDArray[np.float32]
    ) -> None:  # fmt: skip
        """What a site returned for a few samples (the first dimension); too many are cut off."""
        per_sample = max(1, int(np.prod(values.shape[1:])))
        values = np.ascontiguousarray(values[: max(0, MAX_SNAPSHOT // per_sample)], dtype="<f4")
        if self._mine() and values.size:
            note = NewSnapshot(address, step, values.shape, values.tobytes())
            self._queue.put_note("snapshot", note)

    def findings(self, findings: Sequence[Mapping[str, object]]) -> None:
        """What the doctor has found so far; it replaces what it had found before."""
        if self._mine():
            self._queue.put_findings([dict(finding) for finding in findings])

    def info(self, **facts: object) -> None:
        """More facts about the run, as plain data; a fact that is known is replaced."""
        if self._mine():
            self._queue.put_note("info", facts)

    # Ends

    @property
    def problem(self) -> str | None:
        """Why nothing is being written at the moment, if so."""
        return self._health.problem

    @property
    def seconds(self) -> float:
        """Seconds of the processor that writing has taken so far, on its own thread."""
        return self._health.seconds

    def stay_open(self) -> None:
        """At the end of the program somebody will close it, and it need not do so by itself."""
        self._finish.atexit = False

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until everything so far is in the file; False if it is not. Not for training."""
        if not self._mine() or not self._finish.alive:
            return False
        ticket = self._queue.ask_to_flush()
        with self._queue.lock:
            self._queue.changed.wait_for(
                lambda: self._queue.flushed >= ticket or self._queue.stopped, timeout
            )
        return self._queue.flushed >= ticket and self._health.problem is None

    def close(self, *windows: Sheet, timeout: float = 30.0) -> None:
        """Write the windows that are still open, and everything else, and end. Never raises."""
        if not self._mine() or not self._finish.alive:
            return
        for window in windows:
            if window.steps:
                window.why = window.why or "end"
                self._queue.put(window, always=True)
        self._finish.detach()
        _stop(self._queue, self._thread, self._pid, timeout)

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if not self._finish.alive else (self.problem or "writing")
        return f"<RunWriter {str(self.path)!r}: {len(self._units):,} series, {state}>"

    def _mine(self) -> bool:
        """Whether this is the process that made the writer: a forked child leaves it alone."""
        return os.getpid() == self._pid


def _stop(queue: WindowQueue, thread: threading.Thread, pid: int, timeout: float) -> None:
    """Have the thread write what is left and end."""
    if os.getpid() != pid:
        return
    queue.ask_to_stop()
    thread.join(timeout)
