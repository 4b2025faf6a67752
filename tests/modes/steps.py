"""What the cells share: networks, three steps of training, what a watch recorded of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import nethook

STEPS = 3

Rows = dict[tuple[str, str], Any]
"""(address, quantity) -> its fields, each with a number a step."""

EXACT = ("tensors", "skipped", "count", "nan", "posinf", "neginf", "zeros")
CLOSE = ("mean", "std", "min", "max")


@contextmanager
def patched(target: str, value: Any) -> Iterator[None]:
    """One name of nethook's is something else: how a guard is switched off."""
    with mock.patch(target, value):
        yield


def train(
    model: Any,
    batches: Any,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[Any, Any], torch.Tensor] = F.cross_entropy,
) -> list[torch.Tensor]:
    """The plain loop; what the model returned in each step."""
    outputs = []
    for x, y in batches:
        optimizer.zero_grad()
        out = model(x)
        loss(out, y).backward()
        optimizer.step()
        outputs.append(out.detach().clone())
    return outputs


@contextmanager
def watching(model: Any, optimizer: Any = None, **options: Any) -> Iterator[Rows]:
    """Watches everything at every step; what was recorded is there once the block is left."""
    rows: Rows = {}
    options = {"budget": None, **options}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        with nethook.watch(model, optimizer, to=path, **options) as watch:
            watch.be_silent()
            yield rows
        rows.update(recorded(path))


def recorded(path: Path) -> Rows:
    """Every series of a run; an event of a failure is an error."""
    rows: Rows = {}
    with nethook.open_run(path) as run:
        failed = [event.message for event in run.events if event.kind == "watch-failed"]
        assert failed == []
        for info in run.catalogue:
            series = run.series(info.address, info.quantity)
            rows[info.address, info.quantity] = {
                name: np.asarray(series[name]) for name in (*EXACT, *CLOSE)
            }
    return rows


def same(
    rows: Rows, expected: Rows, quantities: tuple[str, ...] = ("outputs", "grads"), *,
    rtol: float = 1e-5, atol: float = 1e-7,
) -> None:  # fmt: skip
    """Both have the same series of these quantities, with the same numbers in every step."""
    keys = {key for key in expected if key[1] in quantities}
    assert keys
    assert {key for key in rows if key[1] in quantities} == keys
    for key in sorted(keys):
        for name in EXACT:
            np.testing.assert_array_equal(rows[key][name], expected[key][name], f"{key} {name}")
        for name in CLOSE:
            np.testing.assert_allclose(
                rows[key][name], expected[key][name], rtol, atol, err_msg=f"{key} {name}"
            )


def equal(values: Any, expected: Any) -> None:
    """The same tensors, bit for bit."""
    assert len(values) == len(expected)
    for value, other in zip(values, expected, strict=True):
        assert torch.equal(value, other)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.act = nn.GELU()
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(self.act(self.up(self.norm(x))))


class Blocks(nn.Module):
    """Repeated blocks on 3-D inputs, the way transformers are built."""

    def __init__(self, width: int = 8, depth: int = 3) -> None:
        super().__init__()
        self.embed = nn.Linear(6, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x).mean(1)


class Conv(nn.Module):
    """Convolution, batch norm, rectifier in place."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.fc = nn.Linear(4 * 36, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.relu(self.norm(self.conv(x))).flatten(1))


class Turned(nn.Linear):
    """Returns a view of what it made, whatever the torch; a `Linear` does so before 2.15 only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).transpose(1, 2)


class Views(nn.Module):
    """Layers that return views, which the next one writes to in place."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(6, 8)
        self.relu = nn.ReLU(inplace=True)
        self.turn = Turned(8, 8)
        self.act = nn.ReLU(inplace=True)
        self.flat = nn.Flatten()
        self.fc = nn.Linear(7 * 8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.flat(self.act(self.turn(self.relu(self.up(x))))))


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 5))


_NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (_mlp, (8, 10)),
    "conv": (Conv, (8, 1, 6, 6)),
    "blocks": (Blocks, (4, 7, 6)),
    "views": (Views, (4, 7, 6)),
}


def network(name: str, seed: int = 0) -> nn.Module:
    """A fresh network, always with the same weights."""
    torch.manual_seed(seed)
    return _NETWORKS[name][0]()


def batches(name: str, steps: int = STEPS) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and classes for it, always the same."""
    shape = _NETWORKS[name][1]
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(shape, generator=generator),
            torch.randint(5, shape[:1], generator=generator),
        )
        for _ in range(steps)
    ]
