"""Trials of small programs, for the tests of this folder."""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass
from pathlib import Path

from nethook.running.program import Program
from nethook.running.trying.change import Change
from nethook.running.trying.comparing import Losses, read_losses
from nethook.running.trying.process import TrialEnd, run_trial
from nethook.running.trying.try_fixes import Trials, environment_of, prepared
from tests.running.both import environment
from tests.running.trying.warm_trials import run_warm_trial

# A script that trains; a test puts its fault in the place of a line.
TRAINING = """
import torch
from torch import nn
torch.manual_seed(0)
generator = torch.Generator().manual_seed(1)
x = torch.randn(256, 8, generator=generator)
y = (x @ torch.randn(8, 1, generator=generator)).tanh()
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def batches():
    for start in range(0, 256, 32):
        yield x[start:start + 32], y[start:start + 32]
for epoch in range(10):
    for batch, target in batches():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch), target)
        loss.backward()
        optimizer.step()
"""


@dataclass(frozen=True)
class Made:
    """A trial that has ended: how, and what is in its scratch folder."""

    end: TrialEnd
    scratch: Path
    inside: Path

    @property
    def losses(self) -> Losses:
        """What its run file has."""
        return read_losses(self.scratch / "trial.db", self.end.step)


def program(folder: Path, source: str, *args: str, name: str = "script.py") -> Program:
    """A script in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(textwrap.dedent(source), encoding="utf-8")
    return Program(name, args)


def trial(
    folder: Path,
    source: str,
    *args: str,
    change: Change | None = None,
    steps: int = 40,
    seconds: float = 60,
    warm: bool = False,
) -> Made:
    """Runs a script of this text as a trial, in the folder `work` of a folder.

    With `warm` its process is a fork that has torch already.
    """
    work = folder / "work"
    trials = Trials(program(work, source, *args), steps, seconds, str(work), environment())
    scratch = folder / "scratch"
    plan, inside = prepared(trials, scratch, change or Change())
    variables = environment_of(trials, scratch, inside)
    if warm:
        end = run_warm_trial(plan, inside, variables)
    else:
        end = run_trial(plan, folder=inside, environment=variables)
    return Made(end, scratch, Path(inside))


def everything(folder: Path) -> dict[str, bytes]:
    """What a folder holds: the path of each file, and its bytes."""
    return {
        os.path.join(where, name): Path(where, name).read_bytes()
        for where, _, names in os.walk(folder)
        for name in names
    }


def both(folder: Path, source: str, change: Change, *, steps: int = 40) -> tuple[Made, Made]:
    """A script as it is, and with a change, each in a fork that has torch already."""
    as_it_is = Change(judged_by=change.judged_by)
    return (
        trial(folder / "before", source, change=as_it_is, steps=steps, warm=True),
        trial(folder / "after", source, change=change, steps=steps, warm=True),
    )


def with_fault(*faults: tuple[str, str]) -> str:
    """The script that trains, with lines replaced."""
    source = TRAINING
    for line, fault in faults:
        assert line in source
        source = source.replace(line, fault)
    return source
