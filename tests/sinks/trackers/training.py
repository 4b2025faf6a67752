"""A small training, watched, and the same numbers by torch alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

import nethook


@dataclass
class Trained:
    """What happened, as torch has it."""

    path: Path
    losses: list[float] = field(default_factory=list)
    grad_norms: list[float] = field(default_factory=list)
    loss_name: str = ""


def train(
    path: Path,
    sinks: Sequence[str | nethook.sinks.Sink],
    *,
    steps: int = 12,
    rate: float = 0.1,
    each: Callable[[int, float], object] = lambda step, loss: None,
) -> Trained:
    """Train a small model; `each` is called after every step, as a script logs."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    done = Trained(path)
    with nethook.watch(model, optimizer, to=path, budget=None, sinks=sinks) as watch:
        watch.be_silent()
        for step in range(steps):
            x = torch.randn(16, 4)
            loss = nn.functional.mse_loss(model(x), x[:, :1])
            optimizer.zero_grad()
            loss.backward()
            grads = [parameter.grad for parameter in model.parameters()]
            done.grad_norms.append(
                float(torch.linalg.vector_norm(torch.cat([g.flatten() for g in grads])))
            )
            done.losses.append(loss.item())
            optimizer.step()
            each(step, loss.item())
    with nethook.open_run(path) as run:
        [done.loss_name] = run.loss_curves()
    return done


def sick(path: Path, sinks: Sequence[str | nethook.sinks.Sink]) -> Trained:
    """A training that ends in NaN: the doctor finds an error."""
    return train(path, sinks, steps=24, rate=1e6)


def problems(path: Path) -> list[str]:
    """Events of sinks that failed."""
    with nethook.open_run(path) as run:
        return [event.message for event in run.events if event.kind == "sink-failed"]
