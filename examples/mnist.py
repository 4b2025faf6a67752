"""Train a small network on handwritten digits and show what nethook sees in it.

    python examples/mnist.py [--epochs N] [--seed S]

The data are scikit-learn's 1,797 digits of 8×8 pixels, scaled to 28×28: they come with the library,
so nothing is downloaded. The network contains no code for nethook.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import nethook

BATCH = 64
# Rectifiers, and layers before one: their units can be dead.
RECTIFIED = ("relu, call 0", "relu, call 1", "fc1")


class MnistNet(nn.Module):
    """Two convolutions and two linear layers; `self.relu` is called twice, F.relu once."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.fc1 = nn.Linear(64 * 7 * 7, 512)
        self.fc2 = nn.Linear(512, 10)
        self.dropout = nn.Dropout(0.25)
        self.bn1 = nn.BatchNorm2d(32)
        self.bn2 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, 1, 28, 28) to the logits of ten classes (N, 10)."""
        x = self.conv1(x)
        x = self.relu(x)
        x = self.bn1(x)
        x = F.max_pool2d(x, 2)  # (N, 32, 14, 14)

        x = self.bn2(self.relu(self.conv2(x)))
        x = F.max_pool2d(x, 2)  # (N, 64, 7, 7)

        x = x.view(-1, 64 * 7 * 7)
        x = self.dropout(F.relu(self.fc1(x)))
        x = self.fc2(x)
        return x  # noqa: RET504 - the network is kept as it was written


def load(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Digits at 28×28 with values from 0 to 1: four fifths to train on, one fifth to test on."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16  # (1797, 1, 8, 8)
    images = F.interpolate(images, size=(28, 28), mode="bilinear", align_corners=False)
    labels = torch.tensor(digits.target)
    train, test = train_test_split(
        torch.arange(len(labels)).numpy(), test_size=0.2, stratify=labels, random_state=seed
    )
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def train(model: nn.Module, data: TensorDataset, epochs: int, console: Console) -> None:
    """Train with Adam; the bar is for a terminal, the line per epoch for a log as well."""
    loader = DataLoader(data, BATCH, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader))
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    model.train()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        steps = progress.add_task("training", total=epochs * len(loader))
        for epoch in range(epochs):
            total = 0.0
            for images, labels in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                schedule.step()
                total += loss.item() * len(labels)
                progress.advance(steps)
            progress.console.print(f"epoch {epoch + 1}/{epochs}  loss {total / len(data):.4f}")


@torch.no_grad()
def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """The fraction of images that are classified correctly."""
    model.eval()
    right = sum(int((model(x).argmax(1) == y).sum()) for x, y in DataLoader(data, BATCH))
    return right / len(data)


@dataclass
class Seen:
    """The outputs of one call of a layer, over all batches that were added."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    zeros: int = 0
    active: Tensor | None = None  # (units,): was it above zero for any image, anywhere?

    def add(self, output: Tensor) -> None:
        """Fold in one batch: (N, units) or (N, units, height, width)."""
        wide = output.double()
        self.count += output.numel()
        self.total += float(wide.sum())
        self.squares += float(wide.square().sum())
        self.zeros += int((output == 0).sum())
        active = (output > 0).transpose(0, 1).flatten(1).any(1)
        self.active = active if self.active is None else self.active | active

    @property
    def mean(self) -> float:
        """The mean over all images, units and positions."""
        return self.total / self.count

    @property
    def std(self) -> float:
        """The standard deviation over the same."""
        return math.sqrt(max(self.squares / self.count - self.mean**2, 0.0))


def calls_of(tape: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every call on a tape with a name to print; a layer that was called twice has two."""
    for address, record in tape.items():
        several = len(record.calls) > 1
        for index, call in enumerate(record.calls):
            yield (f"{address}, call {index}" if several else address), call


@torch.no_grad()
def look_over(model: nn.Module, data: TensorDataset) -> dict[str, Seen]:
    """Every call of every layer over a whole set, one batch in memory at a time."""
    seen: dict[str, Seen] = {}
    model.eval()
    with nethook.trace(model) as tape:
        for images, _ in DataLoader(data, BATCH):
            model(images)
            for name, call in calls_of(tape):
                seen.setdefault(name, Seen()).add(call.output)
            tape.clear()
    return seen


def table_of(seen: dict[str, Seen], tape: Mapping[str, Any]) -> Table:
    """One row per call of a layer: values from the whole test set, gradients from one batch."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("layer", "mean", "std", "zeros", "dead units", "gradient norm"):
        table.add_column(heading, justify="left" if heading == "layer" else "right")
    gradients = {name: float(call.grad.norm()) for name, call in calls_of(tape)}
    for name, layer in seen.items():
        dead = "–"
        if name in RECTIFIED and layer.active is not None:
            dead = f"{int((~layer.active).sum())} of {len(layer.active)}"
        zeros = f"{layer.zeros / layer.count:.1%}"
        table.add_row(
            name, f"{layer.mean:.3f}", f"{layer.std:.3f}", zeros, dead, f"{gradients[name]:.2e}"
        )
    return table


def show(model: nn.Module, data: TensorDataset, console: Console) -> None:
    """What nethook sees in a trained network."""
    model.eval()
    images, labels = data[:BATCH]
    before = nethook.audit(model)
    alone = model(images)

    console.rule("one batch, every layer, with gradients", align="left")
    with nethook.trace(model, grads=True) as tape:
        logits = model(images)
        F.cross_entropy(logits, labels).backward()
    model.zero_grad()
    print(tape)
    print(
        "\nself.relu is one module that forward calls twice, so its record has two calls:\n"
        f"  tape['relu'].calls[0].output.shape  {tuple(tape['relu'].calls[0].output.shape)}\n"
        f"  tape['relu'].calls[1].output.shape  {tuple(tape['relu'].calls[1].output.shape)}\n"
    )

    console.rule(f"every layer over the {len(data)} test images", align="left")
    seen = look_over(model, data)
    console.print(table_of(seen, tape))
    zeros = seen["relu, call 0"].zeros / seen["relu, call 0"].count
    print(
        "\nA dead unit is one that is above zero for no image of the whole set (of a\n"
        f"convolution: nowhere in its map). A zero is not that: {zeros:.0%} of what the first\n"
        "relu gives is zero, and that is a rectifier at work. The third relu is a\n"
        "function, F.relu(self.fc1(x)): its units are read from what it is given, fc1.\n"
    )

    console.rule("what was left behind", align="left")
    after = nethook.audit(model)
    print(f"hooks on the model before and after: {len(before)} and {len(after)}")
    print(f"logits bit-identical with and without nethook: {torch.equal(alone, logits)}")


def main() -> None:
    """Train, test, show."""
    parser = argparse.ArgumentParser(description="Train on handwritten digits and look inside.")
    parser.add_argument("--epochs", type=int, default=6, help="times through the training set")
    parser.add_argument("--seed", type=int, default=0, help="for the split, the start, the order")
    options = parser.parse_args()

    console = Console(highlight=False)
    console = Console(highlight=False, width=min(console.width, 80))
    torch.manual_seed(options.seed)
    training, testing = load(options.seed)
    model = MnistNet()

    console.rule(f"training on {len(training)} digits", align="left")
    start = time.perf_counter()
    train(model, training, options.epochs, console)
    seconds = time.perf_counter() - start
    right = accuracy(model, testing)
    print(f"test accuracy {right:.1%} ({len(testing)} digits kept apart), {seconds:.0f} s\n")
    show(model, testing, console)


if __name__ == "__main__":
    main()
