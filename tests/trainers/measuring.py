"""Runs a program of a trainer as it is and under `nethook run`, and reads what was recorded.

The docstring of a program says what is expected of it:

    needs: keras             the package that it imports; without one it runs everywhere
    expect: nothing          the code of the finding, or `nothing`
    or: diverged             codes that name the same cause
    losses: 2                how many losses it has; one where it does not say
    short: yes               `make test` runs it as well, where its package is installed
    processes: 2             it starts others, so it is run as a user does

At the end it prints what its trainer has logged: `logged: train 0.12 over 40 eval 0.34`; the loss
of training is that of the last step, or the mean over so many of the last ones.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import nethook
from nethook.doctor.diagnose import examine
from nethook.doctor.finding import Finding
from nethook.runs.reading.losses.shown import shown_losses
from tests.processes import run_whole
from zoo.measure import Workers

PROGRAMS: Final = Path(__file__).parent / "programs"
PRELOADED: Final = {
    "lightning": "lightning.pytorch", "transformers": "transformers", "trl": "trl",
    "sentence_transformers": "sentence_transformers", "accelerate": "accelerate",
    "ignite": "ignite.metrics", "skorch": "skorch", "stable_baselines3": "stable_baselines3",
    "keras": "keras", "fastai": "fastai.basics",
}  # fmt: skip
"""Package -> what is imported of it before programs run."""
APART: Final = "fastai"
"""The trainer that needs an older torch, and so an environment of its own."""


@dataclass(frozen=True)
class Program:
    """A program, and what is expected of it."""

    path: Path
    needs: str | None
    codes: frozenset[str]
    losses: int
    is_short: bool
    processes: int

    @property
    def name(self) -> str:
        """Of its file."""
        return self.path.stem

    @property
    def healthy(self) -> bool:
        """Whether nothing is to be found."""
        return "nothing" in self.codes

    @property
    def trainer(self) -> str:
        """`keras` of `keras_sequential` and of `faulty_keras_rate`."""
        return self.name.removeprefix("faulty_").split("_")[0]


@dataclass
class Result:
    """What came of a program under `nethook run`."""

    code: int
    said: str
    paths: list[Path]
    findings: list[Finding] = field(default_factory=list)
    curves: dict[str, list[Any]] = field(default_factory=dict)  # by phase
    shown: dict[str, float] = field(default_factory=dict)  # the last value that is shown first
    states: list[str] = field(default_factory=list)  # of every rank of every run

    @property
    def logged(self) -> dict[str, str]:
        """What the trainer has logged, word by word."""
        found = re.findall(r"^logged: (.*)$", self.said, re.MULTILINE)
        words = found[-1].split() if found else []
        return dict(zip(words[::2], words[1::2], strict=True))


def programs() -> list[Program]:
    """Every program, from what its docstring declares."""
    made = []
    for path in sorted(PROGRAMS.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        said = dict(line.split(": ", 1) for line in text.splitlines()[1:] if ": " in line)
        equal = [code.strip() for code in said.get("or", "").split(",") if code.strip()]
        made.append(
            Program(
                path, said.get("needs"), frozenset({said["expect"].strip(), *equal}),
                int(said.get("losses", 1)), said.get("short") == "yes",
                int(said.get("processes", 1)),
            )
        )  # fmt: skip
    return made


def is_installed(name: str | None) -> bool:
    """Whether a package can be imported; None is none."""
    return name is None or importlib.util.find_spec(name) is not None


def chosen() -> list[Program]:
    """Those that run here: all of them where all trainers are installed, else the short ones.

    fastai has an environment of its own: what needs it runs where it is.
    """
    installed = [program for program in programs() if is_installed(program.needs)]
    together = {program.needs for program in programs()} - {APART}
    complete = all(map(is_installed, together))
    return [p for p in installed if complete or p.is_short or p.needs == APART]


def workers() -> Workers:
    """A process that has imported what the chosen programs need."""
    os.environ["KERAS_BACKEND"] = "torch"
    needed = {program.needs for program in chosen()}
    return Workers([module for package, module in PRELOADED.items() if package in needed])


def run_watched(program: Program, folder: Path, worker: Workers) -> Result:
    """Under `nethook run`, with what it recorded."""
    folder.mkdir(parents=True)
    path = folder / "run.db"
    arguments = ["--to", str(path), "--quiet", str(program.path)]
    if program.processes > 1:
        command = [sys.executable, "-m", "nethook", "run", *arguments]
        done = run_whole(command, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"})
        code, said = done.returncode, done.stdout + done.stderr
    else:
        code, said = worker.run(arguments, folder / "log")
    result = Result(code, said, sorted(p for p in folder.glob("run*.db") if ".rank" not in p.name))
    result.curves = {"train": [], "eval": []}
    for each in result.paths:
        with nethook.open_run(each) as run:
            result.findings += examine(run)[0]
            result.states += [rank.state for rank in run.ranks]
            for loss in reversed(shown_losses(run)):
                result.shown[loss.phase] = loss.last
            for phase, curves in result.curves.items():
                curves += [curve for curve in run.loss_curves(phase).values() if len(curve)]
    return result


def run_plain(program: Program, folder: Path, worker: Workers) -> tuple[int, str]:
    """As it is, without nethook."""
    folder.mkdir(parents=True)
    if program.processes > 1:
        command = [sys.executable, str(program.path)]
        done = run_whole(command, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return done.returncode, done.stdout + done.stderr
    return worker.run([str(program.path)], folder / "log", plain=True)


def numbers_of(result: Result, phase: str) -> list[float]:
    """The last value of each loss, over as many steps as the trainer has logged."""
    over = int(result.logged.get("over", 1)) if phase == "train" else 1
    numbers = []
    for curve in result.curves[phase]:
        last = int(curve.step[-1])
        numbers.append(float(curve.between(last - over + 1, last).mean if over > 1 else curve.last))
    # A loss that is computed by hand without gradient is not seen: the callback tells it.
    return numbers or [result.shown[phase]]


def is_same(number: float, logged: str) -> bool:
    """Whether a number is what the trainer has logged: at its rounding, and that of float32."""
    value = float(logged)
    decimals = len(logged.partition(".")[2]) if "e" not in logged else 17
    return abs(number - value) <= max(0.5 * 10**-decimals, 1e-5 * abs(value))


def lines_of(said: str) -> set[str]:
    """What was printed, without what depends on time: lines once each, and no digits.

    Of a bar of tqdm its title is left: how often it is drawn, and at which rate, depends on time.
    """
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said))
    lines = [re.sub(r"\s*\d+%\|.*", "", line) for line in lines]
    bare = (
        re.sub(r"[\d.,:?]+(e-?\d+)?\s?(s|it/s|s/it|ms)?|[█▏▎▍▌▋▊▉#━╸╺─]+", "", line)
        for line in lines
    )
    kept = {" ".join(line.split()) for line in bare if line.strip()}
    return {line for line in kept if not line.startswith("nethook")}  # what a callback says
