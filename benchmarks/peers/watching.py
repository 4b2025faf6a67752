"""Watching a training of a perceptron, by every tool that can.

Each way attaches what it attaches and trains; a turn is 100 steps. What each keeps differs, and is
part of the answer:

- nethook: outputs, their gradients, parameters, their gradients and true updates of every layer,
  within its budget (3 %), and with none: at every step.
- wandb.watch: histograms of parameters and gradients, offline; every 1,000 steps, which is its
  default, and every 10.
- TensorBoard: histograms of parameters and gradients, written every 10 steps.
- the notes' hooks: five numbers per layer output, at every step.

Questions, besides: are losses and weights those of a training that nobody watches; is anything left
on the model afterwards; and is a NaN in a gradient reported.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from watch import mlp, notes_hooks

from peers.questions import closeness, left_behind
from peers.turns import Work, first_line, functions_of_torch

EVERY, POISONED = 10, 15
STEPS = 100  # training steps of a run


@dataclass
class Training:
    """A training that can be watched.

    Attributes:
        after: what is called after each backward pass, with the number of the step.
        poison: whether one gradient becomes NaN at one step; the step is not taken.
    """

    model: nn.Module
    loss_of: Callable[[nn.Module], Tensor]
    optimizer: torch.optim.Optimizer
    after: Callable[[int], None] = lambda _: None
    poison: bool = False
    step: int = 0
    losses: list[float] = field(default_factory=list)

    def train(self, steps: int) -> None:
        """So many steps."""
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss = self.loss_of(self.model)
            loss.backward()
            if self.poison and self.step == POISONED:
                for parameter in self.model.parameters():
                    if parameter.grad is not None:
                        parameter.grad.view(-1)[0] = torch.nan
                        break
            self.after(self.step)
            self.optimizer.step()
            self.losses.append(float(loss.detach()))
            self.step += 1


def training(seed: int = 0) -> Training:
    """A new one, always the same."""
    torch.manual_seed(seed)
    model, loss_of = mlp()
    return Training(model, loss_of, torch.optim.Adam(model.parameters(), lr=1e-3))


Watcher = Callable[[Training, Path], Callable[[], object]]
"""Attaches to a training, with a folder to write to; what it returns ends it."""


def nobody(_: Training, __: Path) -> Callable[[], object]:
    """Nothing."""
    return lambda: None


def nethook_within_budget(training: Training, folder: Path) -> Callable[[], object]:
    """`nethook.watch` as it is."""
    import nethook

    return nethook.watch(training.model, training.optimizer, to=folder / "run.db").close


def nethook_every_step(training: Training, folder: Path) -> Callable[[], object]:
    """`nethook.watch` without a budget."""
    import nethook

    to = folder / "run.db"
    return nethook.watch(training.model, training.optimizer, to=to, budget=None).close


def wandb_every(frequency: int | None) -> Watcher:
    """`wandb.watch(log="all")`, offline, with a logged loss per step as its users have it."""

    def attach(training: Training, folder: Path) -> Callable[[], object]:
        os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(folder)}
        wandb = importlib.import_module("wandb")
        run = wandb.init(project="peers", dir=str(folder))
        often = {} if frequency is None else {"log_freq": frequency}
        run.watch(training.model, log="all", **often)

        def after(step: int) -> None:
            run.log({"step": step})

        training.after = after

        def end() -> None:
            run.unwatch(training.model)
            run.finish()

        return end

    return attach


def tensorboard(training: Training, folder: Path) -> Callable[[], object]:
    """`SummaryWriter.add_histogram` of every parameter and gradient."""
    from torch.utils.tensorboard import SummaryWriter

    kind: Any = SummaryWriter  # its constructor is not typed
    writer = kind(folder)

    def after(step: int) -> None:
        if step % EVERY == 0 or (training.poison and step == POISONED):
            for name, parameter in training.model.named_parameters():
                writer.add_histogram(name, parameter, step)
                writer.add_histogram(f"{name}.grad", parameter.grad, step)

    training.after = after
    end: Callable[[], object] = writer.close
    return end


def hooks_of_the_notes(training: Training, _: Path) -> Callable[[], object]:
    """Hooks on every layer, with `.item()` of each number."""
    notes_hooks(training.model)
    return lambda: None  # the notes keep no handles


WAYS: dict[str, tuple[str, Watcher]] = {
    "nobody watches": ("torch", nobody),
    "nethook": ("nethook", nethook_within_budget),
    "nethook, no budget": ("nethook", nethook_every_step),
    "wandb.watch": ("wandb", wandb_every(None)),
    "wandb.watch, every 10 steps": ("wandb", wandb_every(EVERY)),
    "TensorBoard, every 10 steps": ("tensorboard", tensorboard),
    "the notes' hooks": ("torch", hooks_of_the_notes),
}
REPORTS = {"nethook", "nethook, no budget"}


def tells_of_nan(way: str, folder: Path) -> str:
    """What is said of a training with one NaN in a gradient."""
    poisoned = training()
    poisoned.poison = True
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            end = WAYS[way][1](poisoned, folder)
            poisoned.train(POISONED + 5)
            end()
    except Exception as error:
        return f"ends the training: {first_line(error)}"
    if way in REPORTS:
        import nethook

        found = nethook.diagnose(folder / "run.db")
        codes = sorted({each.code for each in found if each.severity == "error"})
        return f"reported: {', '.join(codes)}" if codes else "not reported"
    return "no report of its own"


def make(way: str) -> Work:
    """The work of one way, in its own process."""
    if way.startswith("nethook"):
        from timing import hold_the_doctor

        hold_the_doctor()
    folder = tempfile.TemporaryDirectory()
    watched = training()
    functions = functions_of_torch()
    end = WAYS[way][1](watched, Path(folder.name))
    watched.train(300)  # a run begins in detail, and a first step makes the optimizer's state

    def run() -> object:
        watched.train(STEPS)
        return folder  # it is deleted when nobody holds it

    def check() -> dict[str, str]:
        with contextlib.redirect_stderr(io.StringIO()):
            end()
        alone = training()
        alone.train(watched.step)
        weights = [
            torch.cat([each.detach().flatten() for each in it.model.parameters()])
            for it in (watched, alone)
        ]
        losses = [torch.tensor(it.losses) for it in (watched, alone)]
        kept = sum(path.stat().st_size for path in Path(folder.name).rglob("*") if path.is_file())
        with tempfile.TemporaryDirectory() as other:
            nan = tells_of_nan(way, Path(other)) if way != "nobody watches" else "–"
        return {
            "training": closeness(
                torch.cat([weights[0], losses[0]]), torch.cat([weights[1], losses[1]])
            ),
            "left": left_behind(watched.model, functions),
            "bytes": f"{kept / watched.step:.0f} per step",
            "nan": nan,
        }

    return Work(run, check)
