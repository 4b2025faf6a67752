"""The mode itself: what it hands on, in whatever way it runs a function."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.hooks.ops.mode import ops_are_seen, unseen
from nethook.hooks.ops.watch import watch_ops


class Program(nn.Module):
    """A module that runs a function."""

    def __init__(self, run: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.run = run

    def forward(self, x: Tensor) -> Any:
        return self.run(x)


class After(OpConsumer):
    """Keeps results, and puts others in their place."""

    def __init__(self, change: Callable[[Any], Any] = lambda result: None) -> None:
        self.found: list[tuple[str, Any]] = []
        self.change = change

    def after(self, op: Op, function: Any, args: Any, kwargs: Any, result: Any) -> Any:
        self.found.append((op.address, result))
        return self.change(result)


def watched(run: Callable[[Tensor], Any], x: Tensor, *consumers: OpConsumer) -> Any:
    model = Program(run)
    with Attachment(Owner("nethook.test")) as hooks:
        for consumer in consumers:
            watch_ops(Tree(model), hooks, consumer)
        return model(x)


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_written_to_an_element_is_the_whole_tensor(count: int) -> None:
    def write(x: Tensor) -> Tensor:
        x[0] = 5.0
        return x

    consumers = [After() for _ in range(count)]
    x = torch.ones(2)
    watched(write, x, *consumers)
    for each in consumers:
        [(address, result)] = each.found
        assert address == "/setitem#0"
        assert result is x
    changed = watched(write, torch.ones(2), *[After(lambda result: result * 2)] * count)
    assert torch.equal(changed, torch.tensor([10.0, 2.0]) * 2 ** (count - 1))


def keywords(x: Tensor) -> tuple[int, Tensor, Tensor]:
    size = x.size(dim=1)  # no operation
    with unseen():
        hidden = torch.sum(input=x, dim=0)
    return size, hidden, torch.sum(input=x, dim=1)


@pytest.mark.parametrize("count", [1, 2])
def test_keyword_arguments_are_handed_on(count: int) -> None:
    consumers = [After() for _ in range(count)]
    x = torch.arange(6.0).reshape(2, 3)
    size, hidden, seen = watched(keywords, x, *consumers)
    assert size == 3
    assert torch.equal(hidden, x.sum(0))
    assert torch.equal(seen, x.sum(1))
    for each in consumers:
        assert [address for address, _ in each.found] == ["/sum#0"]


def test_a_result_that_is_given_back_is_the_result() -> None:
    out = watched(lambda x: x.add_(1), torch.ones(2), After(lambda result: result))
    assert torch.equal(out, torch.full((2,), 2.0))


def test_what_was_attached_first_is_told_first() -> None:
    order: list[int] = []

    def tells(number: int) -> After:
        return After(lambda _: order.append(number))

    watched(lambda x: x + 1, torch.ones(2), *(tells(number) for number in range(4)))
    assert order == [0, 1, 2, 3]


def test_where_no_module_was_ever_watched_nothing_is_seen() -> None:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(ops_are_seen()))
    thread.start()
    thread.join()
    assert found == [False]
