"""The network that the self-test trains, with and without nethook."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn

BATCH = 32
Watching = Callable[[nn.Module, torch.optim.Optimizer], AbstractContextManager[object]]


@dataclass(frozen=True)
class Trained:
    """What came of a training."""

    losses: torch.Tensor
    weights: list[torch.Tensor]
    random: torch.Tensor
    seconds: float  # per step, without the first tenth of the steps

    def equals(self, other: Trained) -> bool:
        """Whether another training gave the same, bit for bit."""
        mine = [self.losses, self.random, *self.weights]
        others = [other.losses, other.random, *other.weights]
        return all(torch.equal(a, b) for a, b in zip(mine, others, strict=True))


def network(device: torch.device, width: int = 64) -> nn.Sequential:
    """A small network with convolutions, norms, dropout and linear layers."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(8 * 8 * 8, width), nn.LayerNorm(width), nn.GELU(), nn.Dropout(0.1),
        nn.Linear(width, 10),
    ).to(device)  # fmt: skip


def train(
    device: torch.device,
    steps: int,
    watching: Watching | None = None,
    *,
    width: int = 64,
    forward: Callable[[nn.Module], Callable[[torch.Tensor], torch.Tensor]] = lambda model: model,
) -> Trained:
    """Train the network for some steps, the same way each time.

    Arguments:
        device: where.
        steps: how many.
        watching: opens what follows the training; None for nothing.
        width: of the hidden layer.
        forward: what is called in place of the model, such as `torch.compile`.
    """
    model = network(device, width)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    call = forward(model)
    images = torch.randn(4 * BATCH, 1, 16, 16, device=device)
    labels = torch.randint(10, (4 * BATCH,), device=device)
    losses = []
    warm, begin = max(1, steps // 10), 0.0
    with watching(model, optimizer) if watching is not None else nullcontext():
        for step in range(steps):
            if step == warm:
                _wait(device)
                begin = time.perf_counter()
            part = slice(step % 4 * BATCH, (step % 4 + 1) * BATCH)
            loss = nn.functional.cross_entropy(call(images[part]), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        _wait(device)
        seconds = (time.perf_counter() - begin) / max(1, steps - warm)
    weights = [tensor.detach().cpu() for tensor in model.state_dict().values()]
    drawn = torch.rand(8, device=device).cpu()
    return Trained(torch.stack(losses).cpu(), weights, drawn, seconds)


def _wait(device: torch.device) -> None:
    """Let the device finish, where it works on its own."""
    if device.type not in ("cpu", "meta"):
        torch.accelerator.synchronize()
