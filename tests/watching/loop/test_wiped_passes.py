"""Gradients that are cleared before a step: loops that lose them, and loops that do not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.runs.names import WIPED_PASSES
from nethook.watching.loop.wiped_passes import LOOKED, some_of

Loop = Callable[[nn.Module, torch.optim.Optimizer], None]


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(8, 6), torch.randn(8, 2)


def passed(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    nn.functional.mse_loss(model(x), y).backward()


def micro_batches(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Clears what the micro-batch before has left."""
    for _ in range(4):
        optimizer.zero_grad()
        passed(model, *batch())
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)  # the direction stays
    optimizer.step()


def accumulation(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    for _ in range(4):
        passed(model, *batch())
    optimizer.step()


def sharpness(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """SAM, by way of `.data`, which leaves the versions of tensors alone."""
    x, y = batch()
    optimizer.zero_grad()
    passed(model, x, y)
    moves = [0.1 * parameter.grad.clone() for parameter in model.parameters()]  # type: ignore[union-attr]
    for parameter, move in zip(model.parameters(), moves, strict=True):
        parameter.data += move
    optimizer.zero_grad()
    passed(model, x, y)
    for parameter, move in zip(model.parameters(), moves, strict=True):
        parameter.data -= move
    optimizer.step()


def adversarial(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    x, y = batch()
    x.requires_grad_()
    passed(model, x, y)
    optimizer.zero_grad()
    passed(model, (x + 0.1 * x.grad.sign()).detach(), y)  # type: ignore[union-attr]
    optimizer.step()


def surgery(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """PCGrad and its like: the step uses a sum of what was kept."""
    kept: list[list[torch.Tensor]] = []
    for _ in range(2):
        optimizer.zero_grad()
        passed(model, *batch())
        kept.append([parameter.grad.clone() for parameter in model.parameters()])  # type: ignore[union-attr]
    for parameter, *grads in zip(model.parameters(), *kept, strict=True):
        parameter.grad = sum(grads)  # type: ignore[assignment]
    optimizer.step()


def closure(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    x, y = batch()

    def again() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    optimizer.step(again)


def made(kind: str = "SGD") -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    return model, getattr(torch.optim, kind)(model.parameters(), lr=0.01)


def seen(path: Path, loop: Loop, kind: str = "SGD", steps: int = 12) -> list[dict[str, Any]]:
    model, optimizer = made(kind)
    with nethook.watch(model, optimizer, to=path):
        for _ in range(steps):
            loop(model, optimizer)
    with nethook.open_run(path) as run:
        return [event.data for event in run.events if event.kind == WIPED_PASSES]


def test_micro_batches_that_are_lost(tmp_path: Path) -> None:
    (data,) = seen(tmp_path / "run.db", micro_batches)
    assert data == {"steps": LOOKED, "wiped": 3 * LOOKED, "moved": 0, "inputs": 0, "other": 0}


@pytest.mark.parametrize(
    ("loop", "why"), [(sharpness, "moved"), (adversarial, "inputs"), (surgery, "other")]
)
def test_gradients_that_are_used_in_another_way(tmp_path: Path, loop: Loop, why: str) -> None:
    (data,) = seen(tmp_path / "run.db", loop)
    assert data[why] == data["steps"] == LOOKED


@pytest.mark.parametrize(("loop", "kind"), [(accumulation, "SGD"), (closure, "LBFGS")])
def test_nothing_is_told_of_other_loops(tmp_path: Path, loop: Loop, kind: str) -> None:
    assert seen(tmp_path / "run.db", loop, kind) == []


def test_several_optimizers_each_clear_what_is_their_own(tmp_path: Path) -> None:
    model, _ = made()
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.01) for part in (model[0], model[2])]  # type: ignore[index]
    with nethook.watch(model, optimizers, to=tmp_path / "run.db"):
        for _ in range(12):
            for optimizer in optimizers:
                optimizer.zero_grad()
                passed(model, *batch())
                optimizer.zero_grad()
                passed(model, *batch())
                optimizer.step()
    with nethook.open_run(tmp_path / "run.db") as run:
        assert not [event for event in run.events if event.kind == WIPED_PASSES]


@pytest.mark.parametrize("loop", [micro_batches, sharpness, adversarial, surgery])
def test_looking_changes_nothing(tmp_path: Path, loop: Loop) -> None:
    model, optimizer = made()
    twin = copy.deepcopy(model)
    theirs = torch.optim.SGD(twin.parameters(), lr=0.01)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db"):
        torch.manual_seed(1)
        for _ in range(10):
            loop(model, optimizer)
        drawn = torch.rand(())
    torch.manual_seed(1)
    for _ in range(10):
        loop(twin, theirs)
    assert torch.equal(drawn, torch.rand(()))
    for ours, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(ours, other)


def test_some_coordinates_of_gradients() -> None:
    one, two = nn.Parameter(torch.zeros(300)), nn.Parameter(torch.zeros(2))
    assert some_of([one, two]) is None
    one.grad, two.grad = torch.arange(300.0), torch.tensor([7.0, 8.0])
    some = some_of([one, two])
    assert some is not None
    assert some.tolist() == [*range(64), 7, 8]
