"""Starting a trial in a process of its own, waiting for it, and ending what takes too long."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nethook.running.trying.trial import TrialPlan

_ROOT: Final = str(Path(__file__).parents[3])
_TEXT: Final = (
    "import sys; sys.flags.safe_path or sys.path.pop(0); sys.path.append({root!r}); "
    "from nethook.running.trying.trial import main; main({plan!r})"
)
_GRACE: Final = 10.0
"""Seconds after its time in which a trial may close its run before it is killed."""


@dataclass
class TrialEnd:
    """How a trial ended.

    Arguments:
        how: `steps`, `time`, `script` (it came to its end), `refused`, `killed`, `failed`, `lost`.
        step: how many steps its optimizers had made.
        error: the error that the script ended with, or what it was stopped before.
        changed: how often the change took place.
        notes: what could not be followed, in sentences.
        locked: whether the kernel guarded it, too.
    """

    how: str = "lost"
    step: int = 0
    error: str = ""
    changed: int = 0
    notes: list[str] = field(default_factory=list)
    locked: bool = False

    def read(self, words: Mapping[str, Any]) -> None:
        """Takes in one line of a trial."""
        self.step = max(self.step, int(words.get("step", 0)))
        self.changed = max(self.changed, int(words.get("changed", 0)))
        self.locked = bool(words.get("locked", self.locked))
        if "refused" in words:
            self.how, self.error = "refused", str(words["refused"])
        elif "ended" in words:
            self.how, self.error = str(words["ended"]), str(words.get("error", ""))
            self.notes = [str(note) for note in words.get("notes", ())]


def run_trial(
    plan: TrialPlan,
    *,
    folder: str,
    environment: Mapping[str, str],
    options: Sequence[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> TrialEnd:
    """Runs a trial to its end.

    Arguments:
        plan: what it does; its `pipe` is filled in here.
        folder: the folder it works in, of the view.
        environment: that of the script.
        options: of Python.
        progress: told of the step that it has come to.
    """
    reading, writing = os.pipe()
    command = [
        *(sys.executable, *options, "-B", "-c"),
        _TEXT.format(root=_ROOT, plan=plan._replace(pipe=writing).to_json()),
    ]
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writing,),
            start_new_session=True,
        )
    finally:
        os.close(writing)
    try:
        return _wait(reading, time.monotonic() + plan.seconds + _GRACE, progress)
    finally:
        os.close(reading)
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(reading: int, until: float, progress: Callable[[int], None]) -> TrialEnd:
    """Reads what a trial says, until it says no more."""
    end, rest = TrialEnd(), b""
    while True:
        left = until - time.monotonic()
        if left <= 0:
            end.how = "killed" if end.how == "lost" else end.how
            return end
        if not select.select([reading], [], [], min(left, 1.0))[0]:
            continue
        said = os.read(reading, 65536)
        if not said:
            return end
        *lines, rest = (rest + said).split(b"\n")
        for line in lines:
            with suppress(ValueError, TypeError, AttributeError):
                end.read(json.loads(line))
        progress(end.step)
