"""The thread that talks to trackers, and the calls that wait for it.

A tracker that waits for a network holds up neither the run file nor the training. Where it is too
slow, the oldest calls are dropped. A sink that raises is switched off, and the run has one event
for it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from nethook.runs import names
from nethook.runs.writing.listening import Say
from nethook.sinks.sink import RunFacts, Sink

WAITING: Final = 1000
"""Calls that may wait for the trackers; when there are more, the oldest go."""

Call: TypeAlias = Callable[[Sink], object]
Wish: TypeAlias = tuple[str, float]
"""How much a sink wants, and how often."""


class Failure(NamedTuple):
    """What a run is told of a sink that is off: an event."""

    kind: str
    step: int
    message: str


class Sender:
    """Makes calls to sinks, one after the other, on a thread of its own.

    Arguments:
        sinks: whom they go to.
    """

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = list(sinks)
        self._say: Say = lambda *_: None
        self._step = 0  # of the last call
        self._calls: deque[tuple[Wish | None, Call]] = deque(maxlen=WAITING)  # None: for all
        self._last: Call | None = None
        self._bell = threading.Event()
        self._idle = threading.Event()  # nothing waits for the trackers
        self._pid = os.getpid()  # a forked child has this object, and not the thread
        self._thread: threading.Thread | None = None
        self.failures: list[Failure] = []
        """Of sinks that were switched off, in order."""
        self.seconds = 0.0
        """Seconds of the processor that trackers have taken, on their thread."""

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """Those that are on."""
        return tuple(self._sinks)

    @property
    def is_at_work(self) -> bool:
        """Whether there is a thread here that takes more calls."""
        return self._thread is not None and self._last is None and os.getpid() == self._pid

    def ask_here(self, call: Call) -> None:
        """Makes a call at once, on the thread that asks."""
        for sink in self.sinks:
            self._ask(sink, call)

    def tell_failures(self, say: Say) -> None:
        """Has failures become events of a run, those that have been as well."""
        self._say = say
        for failure in self.failures:
            say(*failure)

    def begin(self, facts: RunFacts) -> None:
        """Starts the thread, which tells every sink of the run first. A second call is none."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(facts,), name="nethook-sinks", daemon=True
            )
            self._thread.start()

    def put(self, call: Call, step: int, wish: Wish | None = None) -> None:
        """Has a call made when it is its turn: to the sinks of one wish, or to all."""
        self._step = step
        self._calls.append((wish, call))
        self._idle.clear()
        self._bell.set()

    def wait(self, timeout: float) -> None:
        """Waits until nothing waits."""
        self._bell.set()
        self._idle.wait(timeout)

    def end(self, call: Call, timeout: float) -> None:
        """The last call, after what waits; the thread ends with it."""
        if self._thread is None or not self.is_at_work:
            return
        self._last = call
        self._bell.set()
        self._thread.join(timeout)
        if self._thread.is_alive():
            words = f"trackers had not taken the end of the run after {timeout:.0f} s"
            self.failures.append(Failure(names.SINK_FAILED, self._step, words))

    # On the thread

    def _run(self, facts: RunFacts) -> None:
        self.ask_here(lambda sink: sink.begin(facts))
        while True:
            self._bell.wait()
            self._bell.clear()
            last = self._last
            self._idle.clear()
            while self._calls:
                wish, call = self._calls.popleft()
                for sink in self.sinks:
                    if wish is None or wish == wish_of(sink):
                        self._ask(sink, call)
            self._idle.set()
            self.seconds = time.thread_time()
            if last is not None:
                self.ask_here(last)
                self.seconds = time.thread_time()
                return

    def _ask(self, sink: Sink, call: Call) -> None:
        try:
            call(sink)
        except Exception as error:
            self._sinks.remove(sink)
            words = " ".join(f"{type(error).__name__}: {error}".split())[:500]
            failure = Failure(
                names.SINK_FAILED, self._step, f"the sink {name_of(sink)} is off: {words}"
            )
            self.failures.append(failure)
            self._say(*failure)


def wish_of(sink: Sink) -> Wish:
    """How much a sink wants, and how often."""
    return sink.detail, sink.every


def name_of(sink: Sink) -> str:
    """What events call it."""
    return sink.name or type(sink).__name__
