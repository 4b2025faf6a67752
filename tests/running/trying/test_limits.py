"""What every trial has of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.running.trying.limits import (
    around_steps,
    count_steps,
    load_in_this_process,
    see_evaluations,
    wrap,
)

DATA = TensorDataset(torch.arange(8))


@pytest.fixture
def hooks() -> Any:
    with Attachment(Owner("test")) as attachment:
        yield attachment


def step(optimizer: torch.optim.Optimizer) -> None:
    optimizer.step()


def test_steps_are_counted_by_optimizer(hooks: Attachment) -> None:
    net = nn.Linear(1, 1)
    one, other = (torch.optim.SGD(net.parameters(), lr=0.1) for _ in range(2))
    seen: list[int] = []
    count_steps(hooks, seen.append)
    for optimizer in (one, other, one):
        step(optimizer)
    assert seen == [id(one), id(other), id(one)]


def test_something_is_done_before_and_after_a_step(hooks: Attachment) -> None:
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    seen: list[str] = []
    around_steps(hooks, lambda _: seen.append("before"), lambda _: seen.append("after"))
    step(optimizer)
    assert seen == ["before", "after"]


def test_losses_without_gradient_are_seen(hooks: Attachment) -> None:
    seen: list[int] = []
    see_evaluations(hooks, lambda: seen.append(1))
    prediction, target = torch.randn(4, 3, requires_grad=True), torch.tensor([0, 1, 2, 0])
    nn.functional.cross_entropy(prediction, target)
    assert seen == []
    with torch.no_grad():
        nn.CrossEntropyLoss()(prediction, target)
    assert seen == [1]


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 4, "timeout": 5}),
        ((2, False, None, None, 2), {"multiprocessing_context": "spawn"}),
        ((), {}),
    ],
)
def test_loaders_start_no_processes(hooks: Attachment, args: Any, named: Any) -> None:
    load_in_this_process(hooks)
    loader = DataLoader(DATA, *args, **named)
    assert loader.num_workers == 0
    assert sorted(int(value) for batch in loader for value in batch[0]) == list(range(8))


def test_a_function_is_wrapped_while_the_hooks_are_on() -> None:
    with Attachment(Owner("test")) as hooks:
        wrap(hooks, "torch", "zeros", lambda original, *args, **named: original(*args) + 1)
        assert torch.zeros(2).tolist() == [1, 1]
    assert torch.zeros(2).tolist() == [0, 0]
