"""Starts of data loaders in a run: which, when, and at most so many."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import nethook
from nethook.figures.epochs import epochs_of
from nethook.figures.reading import Reading
from nethook.watching.measuring import loader_passes

DATA = TensorDataset(torch.randn(24, 3), torch.randn(24, 1))


def watched(path, train: Callable[[Callable[[torch.Tensor], None], nn.Module], None]) -> Reading:
    """A run of a small network; `train` is given a function that makes a step of a batch."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    with nethook.watch(model, to=path, optimizer=optimizer, examine=False):
        train(step, model)
    return Reading(path)


def epochs(reading: Reading) -> list[tuple[int, float]] | None:
    found = epochs_of(reading)
    return None if found is None else list(zip(*(each.tolist() for each in found), strict=True))


def test_passes_are_epochs_whatever_is_evaluated_between(tmp_path) -> None:
    loader, other = DataLoader(DATA, 4, shuffle=True), DataLoader(DATA, 8)

    def train(step, model) -> None:
        for _ in range(3):
            for at, (x, y) in enumerate(loader):
                step(x, y)
                if at == 2:
                    with torch.no_grad():
                        for x, _ in other:
                            model(x)

    reading = watched(tmp_path / "a.db", train)
    assert reading.run.info["loaders"] == [
        {"batches": 6, "starts": [[0, 0, 0], [1, 6, 6], [2, 12, 12]]},
        {"batches": 3, "starts": [[0, 3, 3], [1, 9, 9], [2, 15, 15]]},
    ]
    assert epochs(reading) == [(0, 0.0), (6, 1.0), (12, 2.0), (18, 3.0)]


def test_a_loader_may_be_made_for_every_epoch_and_end_early(tmp_path) -> None:
    def train(step, model) -> None:
        for epoch in range(2):
            for at, (x, y) in enumerate(DataLoader(DATA, 4)):
                if epoch == 1 and at == 3:
                    break
                step(x, y)

    assert epochs(watched(tmp_path / "a.db", train)) == [(0, 0.0), (6, 1.0), (9, 1.5)]


def test_a_start_for_every_batch_is_no_epoch(tmp_path) -> None:
    loader = DataLoader(DATA, 4, shuffle=True)

    def train(step, model) -> None:
        for _ in range(8):
            step(*next(iter(loader)))

    assert epochs(watched(tmp_path / "a.db", train)) is None


def test_what_has_no_length_is_left_alone(tmp_path, recwarn) -> None:
    class Stream(IterableDataset):
        def __len__(self) -> int:
            return 2  # torch warns of more samples than this, once it has asked

        def __iter__(self):
            return iter(DATA)

    def train(step, model) -> None:
        for x, y in DataLoader(Stream(), 4):
            step(x, y)

    reading = watched(tmp_path / "a.db", train)
    assert "loaders" not in reading.run.info
    assert not [w for w in recwarn if "IterableDataset" in str(w.message)]


def test_starts_are_thinned(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader_passes, "MOST_STARTS", 8)
    loader = DataLoader(DATA, 12)

    def train(step, model) -> None:
        for _ in range(20):
            for x, y in loader:
                step(x, y)

    reading = watched(tmp_path / "a.db", train)
    (found,) = reading.run.info["loaders"]
    assert [number for number, _, _ in found["starts"]] == [0, 4, 8, 12, 16]
    assert epochs(reading) == [(8 * n, 4.0 * n) for n in range(5)] + [(40, 20.0)]
