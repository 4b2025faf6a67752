"""Leaves without an optimizer: met, moved, held after all, gone."""

from __future__ import annotations

import torch
from torch import nn

from nethook.watching.facts.loose_leaves import LooseLeaves


def names(model):
    return {id(tensor): name for name, tensor in model.named_parameters()}


def test_parameters_of_the_model():
    model = nn.Linear(3, 2)
    loose, tensors = LooseLeaves({"": model}), list(model.parameters())
    assert not loose
    loose.note(tensors, {id(model.bias)}, names(model), step=4)
    loose.note(tensors, {id(model.bias)}, names(model), step=9)
    (entry,) = loose.of_models(names(model))
    assert entry == {"address": "weight", "elements": 6, "looks": 2, "since": 4, "last": 9,
                     "moved": False, "filled": False}  # fmt: skip
    model.weight.data.add_(1.0)
    loose.settle()
    (entry,) = loose.of_models(names(model))
    assert entry["moved"]


def test_what_an_optimizer_gets_later_is_left_out():
    model = nn.Linear(3, 2)
    loose, tensors = LooseLeaves({"": model}), list(model.parameters())
    loose.note(tensors, set(), names(model), step=0)
    assert loose
    loose.note(tensors, {id(tensor) for tensor in tensors}, names(model), step=1)
    assert not loose


def test_tensors_of_no_module_are_counted():
    model, x = nn.Linear(3, 2), torch.randn(2, 3, requires_grad=True)
    loose = LooseLeaves({"": model})
    loose.note([x], set(), names(model), step=0)
    assert loose.tensors == 1
    assert loose.of_others() == []


def test_another_network_is_one_entry_and_goes_with_it():
    model, other = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 2))
    loose = LooseLeaves({"": model})
    loose.note(list(other.parameters()), set(), names(model), step=0)
    (entry,) = loose.of_others()
    assert (entry["how"], entry["kind"], entry["parameters"]) == ("module", "Sequential", 2)
    del other
    assert loose.of_others() == []
    assert loose.of_others(ended=True) == [entry]  # it was there to the last graph
    loose.note([], set(), names(model), step=1)
    assert loose.of_others(ended=True) == []
