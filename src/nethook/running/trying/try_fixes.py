"""`nethook run --try-fix`: the fixes of a run's findings, tried on the script itself.

    trials = Trials(program)                 # before the script runs: its folder and environment
    trials.try_fixes(path, say=print)        # after: a list of Tried, kept in the run file as well

The script is run again, once as it is and once with each change, from the same seeds and in the
same environment, each time in a process of its own for a limited number of steps, in a scratch
folder that is removed at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nethook.errors import RunFileError
from nethook.running.paths import working_folder
from nethook.running.program import Program
from nethook.running.trying.change import Change
from nethook.running.trying.process import TrialEnd, run_trial
from nethook.running.trying.sandbox.folder_view import FolderView
from nethook.running.trying.trial import TrialPlan

if TYPE_CHECKING:
    from nethook.running.trying.comparing import Losses
    from nethook.running.trying.tried import Tried

STEPS: Final = 200
"""Steps of a trial, unless something else is asked for."""
SECONDS: Final = 30.0
"""Seconds of a trial, its start included."""

Say = Callable[[str], None]
"""Told in a few words what is under way, again and again."""


@dataclass(frozen=True)
class Trials:
    """What trials of a script need to know, taken before it runs.

    Arguments:
        program: the script.
        steps, seconds: when a trial ends, whichever comes first.
    """

    program: Program
    steps: int = STEPS
    seconds: float = SECONDS
    folder: str = field(default_factory=working_folder)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def try_fixes(self, path: Path, say: Say) -> None:
        """Tries fixes for the findings of a run, and writes what came of it into the run file.

        Arguments:
            path: the run, closed.
            say: told what is under way.

        Raises:
            RunFileError: the run cannot be read or written.
        """
        from nethook.running.trying.choosing import changes_for
        from nethook.running.trying.tried import Tried
        from nethook.runs.reading.run import open_run
        from nethook.runs.writing.late_facts import add_facts

        with open_run(path) as run:
            changes = changes_for(run)
            ranks = len(run.ranks)
        if not changes:
            return
        if why := self._why_not(ranks):
            tried = [Tried.not_judged(change, why) for change in changes]
        else:
            scratch = Path(tempfile.mkdtemp(prefix="nethook-try-"))
            try:
                tried = _Scratch(self, scratch, say).compare(changes)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        add_facts(path, {"tried": [each.to_dict() for each in tried]})

    def _why_not(self, ranks: int) -> str:
        """Why this script cannot be tried at all; "" where it can."""
        if os.name != "posix":
            return "trials need Linux or macOS"
        if self.program.name == "-":
            return "the script came from the standard input, which is read"
        if ranks > 1 or int(self.environment.get("WORLD_SIZE", "1") or 1) > 1:
            return "the script runs in several processes"
        return ""


class _Scratch:
    """The trials of one run, in their scratch folder."""

    def __init__(self, trials: Trials, scratch: Path, say: Say) -> None:
        self._trials = trials
        self._scratch = scratch
        self._say = say
        self._count = 0

    def compare(self, changes: list[Change]) -> list[Tried]:
        """The script as it is against each change."""
        from nethook.running.trying.comparing import compare
        from nethook.running.trying.tried import Tried

        as_it_is = Change(judged_by="eval" if _any_by_evaluation(changes) else "train")
        before = self._run(as_it_is, "the script as it is", len(changes))
        if isinstance(before, str):
            return [Tried.not_judged(change, before) for change in changes]
        tried = []
        for change in changes:
            after = self._run(change, change.said, len(changes))
            if isinstance(after, str):
                tried.append(Tried.not_judged(change, after))
            else:
                tried.append(Tried.of(change, compare(before, after, change.judged_by)))
        return tried

    def _run(self, change: Change, said: str, changes: int) -> Losses | str:
        """The losses of one trial, or why there are none."""
        from nethook.running.trying.comparing import read_losses

        self._count += 1
        trials = self._trials
        where = f"trial {self._count} of {changes + 1}, {said}"
        self._say(where)
        folder = self._scratch / f"trial{self._count}"
        try:
            plan, inside = prepared(trials, folder, change)
        except OSError as error:
            return f"its folder could not be shown to a trial: {error}"
        end = run_trial(
            plan,
            folder=inside,
            environment=environment_of(trials, folder, inside),
            options=subprocess._args_from_interpreter_flags(),  # type: ignore[attr-defined]
            progress=lambda step: self._say(f"{where}: step {step} of {plan.steps}"),
        )
        if why := _unusable(end, change, trials.seconds):
            return why
        try:
            return read_losses(Path(plan.to), end.step, crashed=bool(end.error))
        except RunFileError:
            return "nothing that is trained was seen in the trial"


def prepared(trials: Trials, folder: Path, change: Change) -> tuple[TrialPlan, str]:
    """The plan of a trial, and the folder of the view that it works in."""
    for name in ("disk", "tmp"):
        (folder / name).mkdir(parents=True)
    view = FolderView(folder / "disk")
    inside = view.enter(trials.folder)
    program = trials.program
    name = program.name
    if not program.module and os.path.isabs(name):
        name = os.path.join(view.enter(os.path.dirname(name)), os.path.basename(name))
    plan = TrialPlan(
        name,
        program.args,
        program.module,
        scratch=os.path.realpath(folder),
        view=view.root,
        to=os.path.realpath(folder / "trial.db"),
        pipe=-1,
        steps=trials.steps,
        seconds=trials.seconds,
        change=change.to_json(),
    )
    return plan, inside


def environment_of(trials: Trials, folder: Path, inside: str) -> dict[str, str]:
    """The environment of the script, but for where temporary files and compiled code go."""
    return {
        **trials.environment,
        "PWD": inside,
        "TMPDIR": str(folder / "tmp"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "tmp" / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "tmp" / "triton"),
        # What is compiled starts compilers; the model runs as it is written.
        "TORCHDYNAMO_DISABLE": "1",
    }


def _unusable(end: TrialEnd, change: Change, seconds: float) -> str:
    """Why a trial says nothing; "" where it does."""
    if end.how == "refused":
        return f"the trial was stopped because the script {end.error}"
    if end.how in ("failed", "lost"):
        return f"the trial failed{f': {end.error}' if end.error else ''}"
    if not end.step:
        if end.error:
            return f"the script ended with {end.error} before its first step"
        if end.how in ("time", "killed"):
            return f"no step was made within {seconds:g} s (--try-seconds gives it more)"
        return "no optimizer stepped"
    if change.fix and not end.changed:
        return "it could not be applied from outside"
    return ""


def _any_by_evaluation(changes: list[Change]) -> bool:
    return any(change.judged_by == "eval" for change in changes)
