"""A loss in a library's loop has the line that calls its function, others that of `backward`."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook

# Whose code it is that runs is told by its file: this is taken for a part of a library.
TRAINER = """
def fit(module, batches):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for x, y in batches:
        loss = module.training_step(x, y) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def own_loss(out, y):
    return F.cross_entropy(out, y)

def pass_through(loss):
    loss.backward()
"""
MODULE = """
class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

    def forward(self, x):
        return self.net(x)

"""
STEP = """
    def training_step(self, x, y):
        out = {called}
        return {loss}  # here

module = Module()
fit(module, batches)  # fit
fit(module, batches)
"""
BY_ITSELF = """
module = Module()
optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
def loss_of(x, y):
    return F.cross_entropy(module(x), y)
for x, y in batches:
    optimizer.zero_grad()
    pass_through(loss_of(x, y))  # fit
    optimizer.step()
"""


def names_of(program: str, path: Path) -> tuple[list[str], dict[str, int]]:
    """The names of the losses of a program, and the lines that its comments mark."""
    torch.manual_seed(0)
    batches = [(torch.randn(8, 3), torch.randint(2, (8,))) for _ in range(5)]
    space: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "batches": batches}
    installed = Path(sysconfig.get_path("purelib"), "some_trainer.py")
    exec(compile(TRAINER, str(installed), "exec"), space)
    before, _, after = (MODULE + program).partition("module = Module()\n")
    exec(compile(before, "train.py", "exec"), space)
    watched = "module = Module()\nwatch = watched(module)\n" + after
    space["watched"] = lambda module: nethook.watch(module, to=path)
    lines = "\n" * before.count("\n") + watched
    exec(compile(lines, "train.py", "exec"), space)
    space["watch"].close()
    text = (before + watched).splitlines()
    marks = {word: next((n for n, line in enumerate(text, 1) if line.endswith(f"# {word}")), 0)
             for word in ("here", "fit")}  # fmt: skip
    with nethook.open_run(path) as run:
        names = list(run.loss_curves("train"))
        assert sum(len(run.loss(name)) for name in names) == run.info["totals"]["steps"]
    return names, marks


@pytest.mark.parametrize("called", ["self(x)", "self.net(x)"], ids=["whole", "part"])
@pytest.mark.parametrize(
    "loss",
    [
        "F.cross_entropy(out, y)",
        "nn.CrossEntropyLoss()(out, y)",
        "F.cross_entropy(out, y, label_smoothing=0.1) + 1e-3 * self.net[0].weight.square().sum()",
    ],
    ids=["function", "module", "sum"],
)
def test_a_loss_of_the_script_has_its_own_line(tmp_path: Path, loss: str, called: str) -> None:
    names, marks = names_of(STEP.format(loss=loss, called=called), tmp_path / "run.db")
    assert names == [f"train.py:{marks['here']}"]  # also where the loop runs a second time


@pytest.mark.parametrize("loss", ["own_loss(out, y)", "(out[:, 0] - y).square().mean()"])
def test_a_loss_that_nobody_saw_has_the_line_of_the_loop(tmp_path: Path, loss: str) -> None:
    names, marks = names_of(STEP.format(loss=loss, called="self(x)"), tmp_path / "run.db")
    # The library's own loss is called for the `training_step` that asks for it.
    expected = "here" if loss.startswith("own") else "fit"
    assert names == [f"train.py:{marks[expected]}"]


def test_a_loop_of_the_script_that_calls_a_library_keeps_its_line(tmp_path: Path) -> None:
    names, marks = names_of(BY_ITSELF, tmp_path / "run.db")
    assert names == [f"train.py:{marks['fit']}"]


def test_the_functions_are_what_they_were(tmp_path: Path) -> None:
    function = torch._C._nn.cross_entropy_loss
    names_of(STEP.format(loss="F.cross_entropy(out, y)", called="self(x)"), tmp_path / "run.db")
    assert torch._C._nn.cross_entropy_loss is function
