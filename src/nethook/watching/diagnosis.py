"""What is wrong with the run that is being watched, while it runs and at its end.

The doctor reads the run file, as anybody may, on a thread of its own: at growing distances, so that
its share of the time stays small, and once more when the run has ended. What it finds is kept in
the file. An error in a rule, or in reading, is an event in the run and nothing else.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Final

from nethook.runs import names
from nethook.runs.paths import is_rank_file

if TYPE_CHECKING:
    from nethook.doctor.finding import Finding
    from nethook.runs.writing.writer import RunWriter
    from nethook.watching.budget import Budget

FIRST: Final = 20.0
"""Seconds after which a run is looked at for the first time."""
GROWTH: Final = 2.0
"""The next look comes after so many times as long as the last."""
DEAREST: Final = 200
"""A look that took a second is followed by so many seconds without one."""


class Diagnosis:
    """Findings of a run that is being written.

    Arguments:
        writer: what writes the run.
        budget: of the watch, which is told what looks take.
    """

    def __init__(self, writer: RunWriter, budget: Budget) -> None:
        self._writer = writer
        self._findings: tuple[Finding, ...] = ()
        self._budget = budget
        self._busy = threading.Lock()
        self._pid = os.getpid()
        self._stop = threading.Event()
        # Other ranks may be steps ahead or behind: the first one speaks for all.
        self._speaks = not is_rank_file(writer.path)
        if self._speaks:
            # The thread holds nothing: a watch that is dropped without being closed is dropped.
            weakref.finalize(self, self._stop.set)
            threading.Thread(
                target=_look_now_and_then,
                args=(weakref.ref(self), self._stop),
                name="nethook-doctor",
                daemon=True,
            ).start()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the last look has found."""
        return self._findings

    def look(self) -> tuple[Finding, ...]:
        """Looks at what is in the file now; never raises."""
        with self._busy:
            try:
                self._look()
            except Exception as error:
                self._writer.event(
                    names.FAILED,
                    0,
                    f"{type(error).__name__}: {error}",
                    data={"where": "diagnosis", "error": f"{type(error).__name__}: {error}"},
                )
        return self._findings

    def took(self, seconds: float) -> None:
        """A look has taken so many seconds of the processor, while the run went on."""
        self._budget.doctor_took(seconds)

    def close(self) -> None:
        """The run has ended: the last look, at all of it."""
        if os.getpid() != self._pid:
            return
        self._stop.set()
        if self._speaks:
            self.look()

    def _look(self) -> None:
        began = time.thread_time()  # to import the rules is a part of the first look
        from nethook.doctor.diagnose import examine
        from nethook.runs.reading.run import Run

        self._writer.flush()
        # The files of other ranks are not opened: a rank that ends meanwhile could not put its
        # own in order.
        with Run(self._writer.path, only=0) as run:
            findings, failed, rules = examine(run)
        self._findings = tuple(findings)
        self._writer.findings([finding.to_dict() for finding in findings])
        self._writer.info(
            diagnosis={
                "time": time.time(),
                "seconds": time.thread_time() - began,
                "checks": rules - len(failed),
                "failed": failed,
            },
        )


def _look_now_and_then(owner: weakref.ref[Diagnosis], stop: threading.Event) -> None:
    wait = FIRST
    while not stop.wait(wait):
        diagnosis = owner()
        if diagnosis is None:
            return
        began = time.thread_time()
        diagnosis.look()
        took = time.thread_time() - began
        diagnosis.took(took)
        wait = max(GROWTH * wait, DEAREST * took)
        del diagnosis
