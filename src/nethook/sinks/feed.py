"""From the writer's thread to trackers, by way of a thread of their own.

    training thread --window--> writer's thread --numbers--> nethook-sinks --> trackers

The writer's thread folds a window into a few numbers, and hands these over (`sender`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from nethook.errors import RunFileError
from nethook.runs.writing.late_facts import add_events
from nethook.runs.writing.listening import Say
from nethook.runs.writing.queue import Delivery
from nethook.runs.writing.store import NewSeries
from nethook.sinks.bins import bin_edges
from nethook.sinks.ending import Ending, ending_of
from nethook.sinks.histograms import Histograms
from nethook.sinks.numbers import Numbers
from nethook.sinks.points import Points
from nethook.sinks.sender import Call, Sender, name_of, wish_of
from nethook.sinks.sink import Counts, RunFacts, Sink
from nethook.text.findings import SEVERITIES, Finding, read_findings

PATIENCE: Final = 60.0
"""Seconds that the end of a run waits for trackers."""


class Feed:
    """What the writer's thread tells, as calls for sinks.

    Arguments:
        sinks: where it goes.
        model: the classes of the models.
    """

    def __init__(self, sinks: Sequence[Sink], *, model: str = "") -> None:
        self._facts = RunFacts("", Path(), model)
        self._numbers = Numbers()
        self._points = {wish: Points(wish[1]) for wish in dict.fromkeys(map(wish_of, sinks))}
        self._histograms = Histograms()
        self._wants_all = any(detail == "all" for detail, _ in self._points)
        self._told: dict[str, str] = {}  # code of a finding -> how severe it was
        self._step = 0
        self._busy = threading.Lock()  # numbers are being made
        self._ended = False
        self._sender = Sender(sinks)

    @property
    def names(self) -> list[str]:
        """The sinks that are on."""
        return [name_of(sink) for sink in self._sender.sinks]

    @property
    def problems(self) -> list[str]:
        """Why sinks were switched off."""
        return [failure.message for failure in self._sender.failures]

    @property
    def seconds(self) -> float:
        """Seconds of the processor that trackers have taken, on their thread."""
        return self._sender.seconds

    # The thread that opens the watch

    def join(self) -> None:
        """Lets every sink look for what the script has open."""
        self._sender.ask_here(lambda sink: sink.join())

    # The writer's thread

    def opened(self, path: Path, series: Mapping[tuple[str, str], int], say: Say) -> None:
        """The run is open."""
        self._facts = replace(self._facts, name=path.stem, path=path)
        for (address, quantity), row in sorted(series.items(), key=lambda item: item[1]):
            self._numbers.add_series(row, address, quantity)
        self._sender.tell_failures(say)

    def heard(self, delivery: Delivery) -> None:
        """Makes numbers of what was delivered, and hands over what is due."""
        if self._sender.sinks and not self._ended:
            with self._busy:
                self._hear(delivery)

    def _hear(self, delivery: Delivery) -> None:
        self._sender.begin(self._facts)
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
        for wish, points in self._points.items():
            for step, values in points.take(now=now):
                self._sender.put(_scalars(step, values), self._step, wish)
        if self._wants_all:
            step = self._histograms.step
            for tag, counts in self._histograms.take(self._numbers.keys, now=now):
                self._sender.put(_histogram(step, tag, counts), self._step)

    def _tell_findings(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            before = self._told.get(finding.code)
            worse = before is None or SEVERITIES.index(finding.severity) < SEVERITIES.index(before)
            if worse:
                self._told[finding.code] = finding.severity
                self._sender.put(_finding(finding), self._step)

    # Whoever closes the watch

    def drain(self, timeout: float = PATIENCE) -> None:
        """Sends what is left, and waits until the trackers have it: the run may have events."""
        if self._sender.is_at_work:
            with self._busy:
                self._hand_over(now=True)
            self._sender.wait(timeout)

    def end(self, timeout: float = PATIENCE) -> None:
        """The run is written to its end: sends the verdict and the report."""
        if not self._sender.is_at_work:
            return
        self._ended = True
        known = len(self._sender.failures)
        report = any(sink.wants_report for sink in self._sender.sinks)
        with ending_of(self._facts.path, report=report) as ending:
            self._sender.end(_end(ending), timeout)
        if late := self._sender.failures[known:]:
            with suppress(RunFileError):
                add_events(self._facts.path, late)


EDGES: Final = bin_edges()


def _scalars(step: int, values: Mapping[str, float]) -> Call:
    return lambda sink: sink.scalars(step, values)


def _histogram(step: int, tag: str, counts: Counts) -> Call:
    def call(sink: Sink) -> None:
        if sink.detail == "all":
            sink.histogram(step, tag, counts, EDGES)

    return call


def _end(ending: Ending) -> Call:
    return lambda sink: sink.end(ending.verdict, ending.report)


def _finding(finding: Finding) -> Call:
    return lambda sink: sink.finding(finding)
