"""Random numbers, and statistics that each forward updates."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.zoo.exhibit import Exhibit, Given

__all__ = ["EXHIBITS"]


class AllSources(nn.Module):
    """Draws from torch, python and numpy."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        noise = torch.randn_like(x) * random.random() + float(np.random.rand())
        return self.fc(x + noise)


class OwnGenerator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(1)
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x + torch.rand(x.shape, generator=self.generator))


class Forked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            inner = self.drop(x)
        return inner + self.drop(x)


class Sampler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits = self.fc(x)
        draw = torch.distributions.Categorical(logits=logits).sample()
        return F.gumbel_softmax(logits, hard=True), draw, torch.bernoulli(logits.sigmoid().detach())


class Counts(nn.Module):
    """Keeps Python state: a counter, a log, the last tensor it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.calls = 0
        self.log: list[Any] = []
        self.last: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.last = self.fc(x)
        self.log.append((self.calls, self.last.detach().mean().item()))
        return self.last / self.calls


def _twice(model: nn.Module, given: Given) -> object:
    return [model(given.floats(3, 4)) for _ in range(2)]


EXHIBITS = (
    Exhibit(
        "dropout",
        "Dropout and a random leaky ReLU in training.",
        lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.RReLU(), nn.AlphaDropout()),
    ),
    Exhibit("all_random_sources", "Random numbers of torch, python and numpy.", AllSources, _twice),
    Exhibit("own_generator", "A generator of the model's own.", OwnGenerator, _twice),
    Exhibit("forked_random_state", "A forward that seeds inside `fork_rng`.", Forked),
    Exhibit("sampling", "Samples drawn from an output, straight-through one-hot.", Sampler),
    Exhibit(
        "batch_norm",
        "Batch norm updates its buffers in training.",
        lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.BatchNorm1d(4, momentum=None)),
        _twice,
    ),
    Exhibit("python_state", "A forward that counts, logs, and keeps a tensor.", Counts, _twice),
)
