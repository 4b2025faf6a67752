"""One trial, in a process of its own: the script, with or without a change, for some steps.

The parent starts `main` with a `TrialPlan`. The process gives up what a trial may not do, runs the
script under the same watch as `nethook run`, and says through a pipe, in lines of JSON, how far it
is and how it ended. The losses are in its run file.
"""

from __future__ import annotations

import json
import os
import platform
import random
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from nethook.hooks.imports import when_imported
from nethook.running.detecting.following import Session
from nethook.running.imports import keep_apart, leave_to_script, world_of_ours
from nethook.running.options import RunOptions
from nethook.running.program import Program
from nethook.running.tracebacks import one_line
from nethook.running.trying.change import Change
from nethook.running.trying.sandbox.folder_view import FolderView
from nethook.running.trying.sandbox.guard import Guard
from nethook.running.trying.sandbox.kernel_lock import lock
from nethook.running.trying.sandbox.native_writers import guard_native_writers

_SEED: Final = 0
_OFTEN: Final = 0.2
"""Seconds between two words about how far it is."""


class TrialPlan(NamedTuple):
    """What a trial is told.

    Arguments:
        name, args, module: the program, as in `Program`; its path is one of the view.
        scratch: the folder in which it may write; `view` is inside it.
        view: the folder that stands for `/`.
        to: its run file, in `scratch`.
        pipe: the file descriptor that it reports to.
        steps, seconds: when it ends, whichever comes first.
        change: `Change.to_json`.
    """

    name: str
    args: tuple[str, ...]
    module: bool
    scratch: str
    view: str
    to: str
    pipe: int
    steps: int
    seconds: float
    change: str

    def to_json(self) -> str:
        """The plan as text."""
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> TrialPlan:
        """The plan that a text holds."""
        fields: dict[str, Any] = json.loads(text)
        fields["args"] = tuple(fields["args"])
        return cls(**fields)


def main(text: str) -> None:
    """Run the trial. The process ends in here."""
    plan = TrialPlan.from_json(text)
    program = Program(plan.name, plan.args, plan.module)
    if again := keep_apart(program.folder, sys.path):
        again(__name__).main(text)  # this module was imported before that
        return
    _Trial(plan, program).run()


class _Trial:
    """The process of one trial."""

    def __init__(self, plan: TrialPlan, program: Program) -> None:
        from nethook.running.detecting.watches import start_watching

        self._plan = plan
        self._program = program
        self._change = Change.from_json(plan.change)
        self._until = time.monotonic() + plan.seconds
        self._session = Session(
            RunOptions(plan.to, "trial", batches=0, examine=False), start_watching
        )
        self._steps: dict[int, int] = {}
        self._done = 0
        self._evaluated = False  # since the first step
        self._said = 0.0
        self._ending = False

    def run(self) -> None:
        """From the first line of the script to the end of the process."""
        platform.platform()  # asks a process for the processor's name, once
        locked = lock(self._plan.scratch)
        self._tell(began=True, locked=locked)
        guard = Guard(FolderView(Path(self._plan.view)), self._plan.scratch, self._refused)
        guard_native_writers(guard)
        random.seed(_SEED)
        when_imported("torch", self._prepare)
        when_imported("torch", self._session.begin)
        guard.turn_on()
        leave_to_script()
        error = ""
        try:
            self._program.run()
        except SystemExit as end:
            error = "" if end.code in (None, 0) else f"sys.exit({end.code!r})"
        except BaseException as raised:
            error = one_line(raised)
        self._end("script", error)

    def _prepare(self) -> None:
        """Torch is there: the same random numbers in every trial, the change, and the limits."""
        with world_of_ours():
            try:
                import numpy as np
                import torch

                from nethook.hooks.attachment import Attachment
                from nethook.hooks.hook import Owner
                from nethook.running.trying.limits import (
                    count_steps,
                    load_in_this_process,
                    see_evaluations,
                )

                np.random.seed(_SEED)
                torch.manual_seed(_SEED)
                self._hooks = Attachment(Owner("nethook run --try-fix"))
                load_in_this_process(self._hooks)
                count_steps(self._hooks, self._stepped)  # before a change can take place
                if self._change.fix:
                    fix = import_module(f"nethook.running.trying.fixes.{self._change.fix}")
                    fix.apply(self._change, self._hooks, self._took_place)
                if self._change.judged_by == "eval":
                    see_evaluations(self._hooks, self._saw_evaluation)
            except Exception as error:
                self._end("failed", f"nethook: {one_line(error)}")

    def _took_place(self) -> None:
        self._done += 1

    def _stepped(self, optimizer: int) -> None:
        """An optimizer is about to step: is it enough?"""
        steps = self._steps.get(optimizer, 0)
        now = time.monotonic()
        if steps >= self._plan.steps and self._enough():
            self._end("steps")
        if now > self._until:
            self._end("time")
        self._steps[optimizer] = steps + 1
        if now - self._said > _OFTEN:
            self._said = now
            self._tell(step=max(self._steps.values()), changed=self._done)

    def _enough(self) -> bool:
        """Whether the steps suffice; a change that evaluations judge waits for one."""
        return self._change.judged_by == "train" or self._evaluated

    def _saw_evaluation(self) -> None:
        self._evaluated = self._evaluated or bool(self._steps)

    def _end(self, how: str, error: str = "") -> None:
        """Ends the process: nothing that the script still wants to do is done."""
        if self._ending:
            return
        self._ending = True
        with world_of_ours(), suppress(BaseException):
            self._session.end()
        with suppress(BaseException):
            self._tell(
                ended=how,
                error=error,
                step=max(self._steps.values(), default=0),
                changed=self._done,
                notes=self._session.notes,
            )
        os._exit(0)

    def _refused(self, what: str) -> None:
        self._tell(refused=what, step=max(self._steps.values(), default=0))

    def _tell(self, **words: object) -> None:
        with suppress(OSError):
            os.write(self._plan.pipe, f"{json.dumps(words)}\n".encode())
