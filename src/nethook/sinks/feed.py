"""From the writer's thread to trackers, by way of a thread of their own.

    training thread --window--> writer's thread --numbers--> nethook-sinks --> trackers

The writer's thread folds a window into a few numbers, and hands these over: a tracker that waits
for a network holds up neither the run file nor the training. Where it is too slow, the oldest
numbers are dropped. A sink that raises is switched off, and the run has one event for it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from nethook.errors import RunFileError
from nethook.runs import names
from nethook.runs.writing.late_facts import add_events
from nethook.runs.writing.listening import Say
from nethook.runs.writing.queue import Delivery
from nethook.runs.writing.store import NewSeries
from nethook.sinks.bins import bin_edges
from nethook.sinks.ending import Ending, ending_of
from nethook.sinks.histograms import Histograms
from nethook.sinks.numbers import Numbers
from nethook.sinks.points import Points
from nethook.sinks.sink import Counts, RunFacts, Sink
from nethook.text.findings import SEVERITIES, Finding, read_findings

WAITING: Final = 1000
"""Calls that may wait for the trackers; when there are more, the oldest go."""
PATIENCE: Final = 60.0
"""Seconds that the end of a run waits for trackers."""

_Call = Callable[[Sink], object]
_Key = tuple[str, float]  # how much a sink wants, and how often


class Feed:
    """What the writer's thread tells, and a thread that tells it to sinks.

    Arguments:
        sinks: where it goes.
        model: the classes of the models.
    """

    def __init__(self, sinks: Sequence[Sink], *, model: str = "") -> None:
        self._sinks = list(sinks)
        self._facts = RunFacts("", Path(), model)
        self._numbers = Numbers()
        self._points = {key: Points(key[1]) for key in dict.fromkeys(map(_key, sinks))}
        self._histograms = Histograms()
        self._wants_all = any(detail == "all" for detail, _ in self._points)
        self._told: dict[str, str] = {}  # code of a finding -> how severe it was
        self._step = 0
        self._say: Say = lambda *_: None
        self._calls: deque[tuple[_Key | None, _Call]] = deque(maxlen=WAITING)  # None: for all
        self._bell = threading.Event()
        self._idle = threading.Event()  # nothing waits for the trackers
        self._busy = threading.Lock()  # numbers are being made
        self._ending: Ending | None = None
        self._pid = os.getpid()  # a forked child has this object, and not the thread
        self._thread: threading.Thread | None = None
        self._last_words: list[tuple[str, int, str]] = []
        self.seconds = 0.0
        """Seconds of the processor that trackers have taken, on their thread."""

    @property
    def names(self) -> list[str]:
        """The sinks that are on."""
        return [sink.name or type(sink).__name__ for sink in self._sinks]

    @property
    def problems(self) -> list[str]:
        """Why sinks were switched off."""
        return [message for _, _, message in self._last_words]

    # The thread that opens the watch

    def join(self) -> None:
        """Lets every sink look for what the script has open."""
        for sink in list(self._sinks):
            self._ask(sink, lambda sink: sink.join())

    # The writer's thread

    def opened(self, path: Path, series: Mapping[tuple[str, str], int], say: Say) -> None:
        """The run is open."""
        self._say = say
        self._facts = replace(self._facts, name=path.stem, path=path)
        for (address, quantity), row in sorted(series.items(), key=lambda item: item[1]):
            self._numbers.add_series(row, address, quantity)
        for kind, step, message in self._last_words:  # of sinks that failed before there was a run
            say(kind, step, message)

    def heard(self, delivery: Delivery) -> None:
        """Makes numbers of what was delivered, and hands over what is due."""
        if self._sinks and self._ending is None:
            with self._busy:
                self._hear(delivery)

    def _hear(self, delivery: Delivery) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="nethook-sinks", daemon=True)
            self._thread.start()
        for entry in delivery.catalogue:
            if isinstance(entry, NewSeries):
                self._numbers.add_series(entry.id, entry.address, entry.quantity)
        window = delivery.window
        for (detail, _), points in self._points.items():
            for kind, note in delivery.notes:
                if kind == "scalar":
                    points.add_scalar(note[0], note[1], every=detail == "all")
            if window is not None and window.steps:
                self._step = max(self._step, window.last_step)
                values = self._numbers.few(window)
                if detail == "all":
                    values |= self._numbers.all(window)
                points.add(values, window.last_step, window.steps)
        if window is not None and self._wants_all:
            self._histograms.add(window)
        self._hand_over()
        if delivery.findings is not None:
            self._tell_findings(read_findings(delivery.findings))

    def _hand_over(self, *, now: bool = False) -> None:
        for key, points in self._points.items():
            for step, values in points.take(now=now):
                self._put(key, _scalars(step, values))
        if self._wants_all:
            step = self._histograms.step
            for tag, counts in self._histograms.take(self._numbers.keys, now=now):
                self._put(None, _histogram(step, tag, counts))

    def _tell_findings(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            before = self._told.get(finding.code)
            worse = before is None or SEVERITIES.index(finding.severity) < SEVERITIES.index(before)
            if worse:
                self._told[finding.code] = finding.severity
                self._put(None, _finding(finding))

    def _put(self, key: _Key | None, call: _Call) -> None:
        self._calls.append((key, call))
        self._idle.clear()
        self._bell.set()

    # The thread of the sinks

    def _run(self) -> None:
        for sink in list(self._sinks):
            self._ask(sink, lambda sink: sink.begin(self._facts))
        while True:
            self._bell.wait()
            self._bell.clear()
            ending = self._ending
            self._idle.clear()
            while self._calls:
                key, call = self._calls.popleft()
                for sink in list(self._sinks):
                    if key is None or key == _key(sink):
                        self._ask(sink, call)
            self._idle.set()
            self.seconds = time.thread_time()
            if ending is not None:
                for sink in list(self._sinks):
                    self._ask(sink, _end(ending))
                self.seconds = time.thread_time()
                return

    def _ask(self, sink: Sink, call: _Call) -> None:
        try:
            call(sink)
        except Exception as error:
            self._sinks.remove(sink)
            name = sink.name or type(sink).__name__
            words = " ".join(f"{type(error).__name__}: {error}".split())[:500]
            said = (names.SINK_FAILED, self._step, f"the sink {name} is off: {words}")
            self._last_words.append(said)
            self._say(*said)

    # Whoever closes the watch

    def drain(self, timeout: float = PATIENCE) -> None:
        """Sends what is left, and waits until the trackers have it: the run may have events."""
        if self._thread is None or self._ending is not None or os.getpid() != self._pid:
            return
        with self._busy:
            self._hand_over(now=True)
        self._bell.set()
        self._idle.wait(timeout)

    def end(self, timeout: float = PATIENCE) -> None:
        """The run is written to its end: sends the verdict and the report."""
        thread = self._thread
        if thread is None or self._ending is not None or os.getpid() != self._pid:
            return
        report = any(sink.wants_report for sink in self._sinks)
        with ending_of(self._facts.path, report=report) as ending:
            self._ending = ending
            self._bell.set()
            known = len(self._last_words)
            thread.join(timeout)
            if thread.is_alive():
                words = f"trackers had not taken the end of the run after {timeout:.0f} s"
                self._last_words.append((names.SINK_FAILED, self._step, words))
        if late := self._last_words[known:]:
            with suppress(RunFileError):
                add_events(self._facts.path, late)


EDGES: Final = bin_edges()


def _key(sink: Sink) -> _Key:
    return sink.detail, sink.every


def _scalars(step: int, values: Mapping[str, float]) -> _Call:
    return lambda sink: sink.scalars(step, values)


def _histogram(step: int, tag: str, counts: Counts) -> _Call:
    def call(sink: Sink) -> None:
        if sink.detail == "all":
            sink.histogram(step, tag, counts, EDGES)

    return call


def _end(ending: Ending) -> _Call:
    return lambda sink: sink.end(ending.verdict, ending.report)


def _finding(finding: Finding) -> _Call:
    return lambda sink: sink.finding(finding)
