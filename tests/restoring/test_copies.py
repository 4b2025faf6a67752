"""Copies to run instead of a model, and of its inputs."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from nethook.addresses.inputs import inputs
from nethook.restoring.copies import own_inputs, stand_in


def test_inputs_are_the_models_own() -> None:
    x = torch.ones(2, requires_grad=True)
    given = own_inputs(inputs(x, mask={"a": torch.zeros(1)}))
    assert given[0].requires_grad
    assert given[0].is_leaf
    given["mask"]["a"].add_(1)
    with torch.no_grad():
        given[0].add_(1)
    assert x.tolist() == [1.0, 1.0]


def test_who_stands_in_for_a_model() -> None:
    model, x = nn.Linear(3, 2), torch.ones(1, 3)
    assert stand_in(model, inputs(x), copied=False)[0] is model
    copied, _ = stand_in(model, inputs(x), copied=True)
    assert copied is not model
    assert torch.equal(copied.weight, model.weight)
    empty, given = stand_in(model, inputs(x.to("meta")), copied=False)
    assert empty is not model
    assert empty.weight.is_meta
    assert isinstance(empty.weight, nn.Parameter)
    assert given[0].is_meta
    without_data = copy.deepcopy(model).to("meta")
    assert stand_in(without_data, inputs(x.to("meta")), copied=False)[0] is without_data
    mixed, given = stand_in(model, inputs(x, mask=x.to("meta")), copied=False)
    assert mixed.weight.is_meta
    assert given[0].is_meta


def test_a_copy_without_data_keeps_ties_and_takes_no_memory() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    empty, _ = stand_in(model, inputs(torch.ones(1, 3, device="meta")), copied=False)
    assert empty[0].weight is empty[1].weight
    assert all(parameter.is_meta for parameter in empty.parameters())
    assert not any(parameter.is_meta for parameter in model.parameters())


def test_a_tensor_that_is_given_twice_is_still_one() -> None:
    x, y = torch.ones(2), torch.ones(2)
    given = own_inputs(inputs(x, [x, y], key=x))
    assert given[0] is given[1][0] is given["key"]
    assert given[0] is not x
    assert given[1][1] is not given[0]


@pytest.mark.parametrize("computed", [False, True])
def test_an_input_with_a_gradient_may_be_written_as_before(computed: bool) -> None:
    """A leaf may not be written in place, and what was computed may."""
    leaf = torch.ones(2, requires_grad=True)
    x = leaf * 1 if computed else leaf
    own = own_inputs(inputs(x))[0]
    assert own.requires_grad
    assert own.is_leaf is not computed
    if computed:
        own.mul_(2).sum().backward()
        assert leaf.grad is None  # the graph of the caller is not reached
    else:
        with pytest.raises(RuntimeError, match="in-place"):
            own.mul_(2)
    assert torch.equal(x, torch.ones(2))


def test_containers_are_copied_and_other_objects_only_with_the_model() -> None:
    class Cache:
        def __init__(self) -> None:
            self.keys = [1]

    cache, numbers = Cache(), [1, 2]
    given = own_inputs(inputs(torch.ones(1), numbers, cache))
    assert given[1] == numbers
    assert given[1] is not numbers
    assert given[2] is cache
    model = nn.Linear(1, 1)
    assert stand_in(model, inputs(torch.ones(1), cache), copied=False)[1][1] is cache
    copied = stand_in(model, inputs(torch.ones(1), cache), copied=True)[1][1]
    assert copied is not cache
    assert copied.keys == [1]
    assert copied.keys is not cache.keys


def test_a_lazy_model_can_be_copied() -> None:
    """Torch's own deepcopy fails on a buffer that is yet to be made."""
    model = nn.Sequential(nn.LazyLinear(2), nn.LazyBatchNorm1d())
    copied, given = stand_in(model, inputs(torch.ones(4, 3)), copied=True)
    given.call(copied)
    assert copied[0].weight.shape == (2, 3)
    assert isinstance(model[0].weight, nn.parameter.UninitializedParameter)
    assert isinstance(model[1].running_mean, nn.parameter.UninitializedBuffer)
