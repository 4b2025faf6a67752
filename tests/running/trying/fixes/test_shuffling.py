"""Data loaders that shuffle."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler, TensorDataset

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.running.trying.change import Change
from nethook.running.trying.comparing import compare
from nethook.running.trying.fixes import shuffling
from tests.running.trying.trials import both

DATA = TensorDataset(torch.arange(100))


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(range(100))


def order(*args: Any, **named: Any) -> list[int]:
    return [int(value) for batch in DataLoader(*args, **named) for value in batch[0].flatten()]


def test_loaders_shuffle_that_did_not() -> None:
    count: list[int] = []
    with Attachment(Owner("test")) as hooks:
        shuffling.apply(Change(), hooks, lambda: count.append(1))
        for args in ((DATA,), (DATA, 10), (DATA, 10, False)):
            assert order(*args) != list(range(100))
        assert order(dataset=DATA, shuffle=False) != list(range(100))
        assert len(count) == 4
        order(DATA, shuffle=True)
        assert order(DATA, sampler=SequentialSampler(DATA)) == list(range(100))
        assert [int(value) for value in DataLoader(Stream())] == list(range(100))
    assert len(count) == 4


def test_evaluations_judge_it() -> None:
    change = shuffling.propose({"code": "unshuffled-data"}, SimpleNamespace())  # type: ignore[arg-type]
    assert change is not None
    assert change.judged_by == "eval"


SORTED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
y = torch.arange(4).repeat_interleave(80)
x = nn.functional.one_hot(y, 4).float() + 0.3 * torch.randn(320, 4)
loader = DataLoader(TensorDataset(x, y), batch_size=16, num_workers=2)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(4):
    for batch, target in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), target).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        nn.functional.cross_entropy(model(x), y)
    model.train()
"""


def test_shuffling_is_tried_without_workers(tmp_path: Path) -> None:
    change = Change("shuffling", "unshuffled-data", judged_by="eval")
    before, after = both(tmp_path, SORTED, change)
    assert (before.end.how, before.end.error) == ("steps", "")
    compared = compare(before.losses, after.losses, "eval")
    assert compared.eval is not None
    assert compared.eval.after < 0.5 * compared.eval.before
    assert compared.helped
