"""Tensors that lie on several ranks, here in a group of one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as collectives
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, distribute_tensor

from nethook.hooks.layouts.dtensor import arrived, is_dtensor
from tests.hooks.common import one_rank


@pytest.fixture(scope="module", autouse=True)
def group() -> Iterator[None]:
    with one_rank():
        yield


def spread() -> torch.Tensor:
    return distribute_tensor(torch.arange(3.0), init_device_mesh("cpu", (1,)), [Replicate()])


def under_way() -> Any:
    return collectives.all_reduce(torch.arange(3.0), "sum", dist.group.WORLD)


def test_a_spread_tensor_is_known() -> None:
    assert is_dtensor(spread())
    assert not is_dtensor(torch.ones(3))
    tensor = under_way()
    assert not is_dtensor(tensor)
    tensor.trigger_wait()


def test_what_is_under_way_is_waited_for() -> None:
    tensor = under_way()
    assert type(tensor) is collectives.AsyncCollectiveTensor
    found = arrived(tensor)
    assert type(found) is torch.Tensor
    assert torch.equal(found, torch.arange(3.0))


def test_all_other_tensors_are_handed_on() -> None:
    for tensor in (torch.ones(3), spread()):
        assert arrived(tensor) is tensor


@pytest.mark.parametrize("kind", [False, True])
def test_nothing_is_spread_where_nobody_has_imported_it(
    kind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while it is being imported: the module is there before its classes are."""
    tensor = torch.ones(3)
    for name in ("torch.distributed.tensor", "torch.distributed._functional_collectives"):
        if kind:
            monkeypatch.setitem(sys.modules, name, type(sys)(name))
        else:
            monkeypatch.delitem(sys.modules, name)
    assert not is_dtensor(tensor)
    assert arrived(tensor) is tensor
    assert ("torch.distributed.tensor" in sys.modules) is kind
