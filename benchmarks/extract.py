"""How fast features go to disk, next to the bare forward loop with the same early stop.

    python benchmarks/extract.py [--rounds N]

The bare loop is what people write: a hook that raises, so that the forward ends there, over the
same loader, in evaluation without gradients; it keeps nothing. An extraction does the same, and
writes features, labels and numbers to files of 8 MB, each of which is on the disk before the next
is done; it also hashes the weights, once. The two take turns, and the quickest rounds count.
The rate is samples a second of the clock; its ratio includes waiting for the disk, that of the
processor's time does not. The last column is what an extraction of one batch costs more.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

import nethook


class Stop(Exception):  # noqa: N818  not an error
    """Ends a forward, as in code written by hand."""


def bare(model: nn.Module, loader: DataLoader[Any], at: str) -> None:
    """The loop without extraction."""

    def stop(*_: object) -> None:
        raise Stop

    handle = model.get_submodule(at).register_forward_hook(stop)
    try:
        with torch.no_grad():
            for inputs, _ in loader:
                try:
                    model(inputs)
                except Stop:
                    continue
    finally:
        handle.remove()


def extracted(folder: str, model: nn.Module, loader: DataLoader[Any], at: str) -> None:
    """The same with nethook, to disk."""
    to = tempfile.mkdtemp(dir=folder)
    nethook.extract(model, loader, at=at, to=to, shard_mb=8)


def convolutions() -> tuple[nn.Module, torch.Tensor, str]:
    """A small convolutional network; the maps before pooling are stored whole: 50 MB."""
    layers: list[nn.Module] = []
    for inside, outside in ((3, 32), (32, 64), (64, 64)):
        conv = nn.Conv2d(inside, outside, 3, stride=1 if inside == 64 else 2, padding=1)
        layers += [conv, nn.BatchNorm2d(outside), nn.ReLU()]
    model = nn.Sequential(nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return model, torch.randn(3072, 3, 32, 32), "0"


def transformer() -> tuple[nn.Module, torch.Tensor, str]:
    """The blocks of a small GPT-2; all token states of the eighth of twelve are stored: 6 MB."""
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(
        n_embd=128, n_layer=12, n_head=4, vocab_size=100, n_positions=64,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model: nn.Module = GPT2Model(config)  # type: ignore[no-untyped-call]
    return model, torch.randint(100, (192, 64)), "h.7"


def measure(ways: Sequence[Callable[[], None]], rounds: int) -> list[tuple[float, float]]:
    """Seconds by the clock and of the processor, for each way: the means of its quickest rounds."""
    for way in ways:
        way()
    taken: list[list[tuple[float, float]]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, each in zip(ways, taken, strict=True):
            clock, processor = time.perf_counter(), time.process_time()
            way()
            each.append((time.perf_counter() - clock, time.process_time() - processor))
    quickest = max(1, rounds // 4)
    return [
        (
            statistics.mean(sorted(clock for clock, _ in each)[:quickest]),
            statistics.mean(sorted(processor for _, processor in each)[:quickest]),
        )
        for each in taken
    ]


def compare(folder: str, make: Callable[[], tuple[nn.Module, torch.Tensor, str]], n: int) -> str:
    """A row of the table."""
    model, x, at = make()
    model.eval()
    data = TensorDataset(x, torch.arange(len(x)))
    taken = {}
    for rows in (32, len(x)):
        loader = DataLoader(Subset(data, range(rows)), batch_size=32)
        ways = [partial(bare, model, loader, at), partial(extracted, folder, model, loader, at)]
        taken[rows] = measure(ways, n)
    plain, whole = taken[len(x)]
    fixed = taken[32][1][0] - taken[32][0][0]
    return (
        f"{make.__name__:16}{len(x) / plain[0]:12,.0f}{len(x) / whole[0]:12,.0f}"
        f"{plain[0] / whole[0]:8.0%}{plain[1] / whole[1]:11.0%}{1e3 * fixed:10.0f} ms"
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="The rate of extraction and of the bare loop.")
    parser.add_argument("--rounds", type=int, default=9, help="turns each way takes")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("samples a second; bound: the rate of extraction is at least 85 % of the bare loop's\n")
    print(
        f"{'':16}{'bare loop':>12}{'extraction':>12}{'ratio':>8}{'processor':>11}{'one batch':>13}"
    )
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for make in (convolutions, transformer):
            print(compare(folder, make, rounds))


if __name__ == "__main__":
    main()
