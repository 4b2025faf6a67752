"""The shards of FSDP2, here in a group of one rank."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

import nethook
from nethook import edits
from nethook.errors import EditError, NoGradientError
from nethook.hooks.layouts.fsdp import groups_of, shards_of
from tests.hooks.common import net, one_rank


@pytest.fixture(scope="module", autouse=True)
def group() -> Iterator[None]:
    with one_rank():
        yield


def sharded() -> nn.Sequential:
    """The last layer is a group of its own, all others are one."""
    mesh = init_device_mesh("cpu", (1,))
    model = net()
    fully_shard(model[2], mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def test_the_parameters_are_the_shards_before_a_forward() -> None:
    model = sharded()
    shards = shards_of(model)
    parameters = dict(model.named_parameters())
    assert list(parameters) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert all(type(each) is DTensor for each in parameters.values())
    assert {id(each) for each in parameters.values()} == set(shards)
    assert all(shards[id(each)] is each for each in parameters.values())


def test_a_gathered_tensor_leads_to_its_shard() -> None:
    model = sharded()
    before = dict(model.named_parameters())
    met: dict[str, torch.Tensor] = {}

    def look(layer: nn.Module, _: Any) -> None:
        # As FSDP does, and after it: the tensors are gathered by now.
        at = "0" if layer is model[0] else "2"
        met.update({f"{at}.{name}": each for name, each in layer.named_parameters()})

    model[0].register_forward_pre_hook(look)
    model[2].register_forward_pre_hook(look)
    model(torch.ones(3, 4))
    shards = shards_of(model)
    assert set(met) == set(before)
    assert len({*map(id, met.values()), *map(id, before.values())}) == len(shards) == 8
    for name, whole in met.items():
        assert type(whole) is not DTensor
        assert shards[id(whole)] is before[name]
        assert shards[id(before[name])] is before[name]


def test_the_groups_are_those_that_were_asked_for() -> None:
    model = sharded()
    found = [{id(each.sharded_param) for each in group.fsdp_params} for group in groups_of(model)]
    outer, inner = ({id(each) for each in model[at].parameters()} for at in (0, 2))
    assert sorted(map(sorted, found)) == sorted(map(sorted, [outer, inner]))


def test_other_models_have_no_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shards_of(net()) == {}
    model = sharded()
    monkeypatch.delitem(sys.modules, "torch.distributed.fsdp")
    assert list(groups_of(model)) == []
    assert "torch.distributed.fsdp" not in sys.modules


def test_the_gradients_of_shards_are_refused_in_words() -> None:
    model = sharded()
    instead = r"calls no hook on it: read `parameter\.grad` after backward\(\)"
    with nethook.trace(model, param_grads=True) as tape:
        model(torch.ones(3, 4)).sum().backward()
    with pytest.raises(NoGradientError, match=instead):
        tape.params["0.weight"].grad
    with pytest.raises(EditError, match=instead):
        with nethook.edit(model, param_grads={"0.weight": edits.zero()}):
            pass
