"""What optimizers hold: leaves, parameters of the models, and tensors of neither."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import nn

from nethook.watching.facts.held_tensors import HeldTensors, TensorSet


def held(model, *optimizers):
    known = SimpleNamespace(
        steps_of_all=lambda: [(optimizer, 5) for optimizer in optimizers],
        steps_of=lambda reference: 5 if reference() in optimizers else None,
    )
    return HeldTensors({"": model}, known)


def noted(model, *optimizers, reached=(), owned=(), search=True):
    tensors = held(model, *optimizers)
    for tensor in reached:
        tensors.reached.add(tensor)
    for tensor in owned:
        tensors.owned.add(tensor)
    tensors.note({id(tensor): name for name, tensor in model.named_parameters()}, search=search)
    return [one for one in tensors.facts() if one["steps"] == 5]


def sgd(*modules):
    return torch.optim.SGD([p for module in modules for p in module.parameters()], 0.1)


class Other(nn.Linear):
    pass


def test_tensors_are_told_by_identity():
    one, other = torch.zeros(2), torch.zeros(2)
    met = TensorSet()
    met.add(one)
    assert one in met
    assert other not in met


def test_an_optimizer_of_the_model():
    model = nn.Linear(3, 2)
    optimizer = sgd(model)
    (facts,) = noted(model, optimizer, reached=model.parameters())
    counts = {name: facts[name] for name in ("parameters", "reached", "of_models", "orphans")}
    assert counts == {"parameters": 2, "reached": 2, "of_models": 2, "orphans": 0}


def test_orphans_are_in_no_network_or_in_one_like_the_watched_one():
    model, old, other = nn.Linear(3, 2), nn.Linear(3, 2), Other(3, 2)
    lost = torch.optim.SGD([nn.Parameter(torch.ones(2))], 0.1)
    of_old, of_other = sgd(old), sgd(other)
    found = noted(model, lost, of_old, of_other)
    assert [one["orphans"] for one in found] == [1, 2, 0]
    assert [one["orphans"] for one in noted(model, lost, search=False)] == [0]


def test_what_was_the_models_own_and_is_not_any_more():
    model, replaced = nn.Linear(3, 2), Other(3, 2)
    optimizer = sgd(replaced)
    known = list(replaced.parameters())
    (facts,) = noted(model, optimizer, reached=known, owned=known, search=False)
    assert facts["orphans"] == 2


def test_what_is_a_leaf_is_no_orphan():
    model, second = nn.Linear(3, 2), nn.Linear(2, 2)
    optimizer = sgd(second)
    (facts,) = noted(model, optimizer, reached=second.parameters())
    assert facts["orphans"] == 0
