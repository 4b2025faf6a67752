"""Which tensor a parameter is now, after something has put another one into its place."""

from __future__ import annotations

import torch
from torch import nn

from nethook.watching.loop.rebinding import Resolver
from nethook.watching.measuring.parameter_facts import ParameterFacts
from tests.watching.fakes import journal


def resolver(model: nn.Module):
    of = journal()
    facts = [ParameterFacts(name, tensor) for name, tensor in model.named_parameters()]
    return of, facts, Resolver(of, {"": model}, facts)


def test_as_long_as_nothing_is_replaced_nothing_has_changed():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    of, _, of_model = resolver(model)
    assert not of_model.changed()
    assert of_model.look(set()) == []
    assert of_model.find() == dict(model.named_parameters())
    assert of.writer.events == []


def test_a_tensor_that_an_optimizer_holds_takes_the_place_of_the_old_one():
    model = nn.Linear(2, 2)
    of, facts, of_model = resolver(model)
    model.weight = nn.Parameter(torch.ones(2, 2))
    assert of_model.changed()
    assert of_model.update({id(model.weight)}) == [facts[0]]
    assert facts[0].parameter is model.weight
    assert not of_model.changed()
    assert "are other tensors now, and an optimizer holds them" in of.writer.events[0][2]


def test_a_tensor_that_nobody_holds_is_left_to_the_next_look():
    model = nn.Linear(2, 2)
    _, facts, of_model = resolver(model)
    old = model.weight
    model.weight = nn.Parameter(torch.ones(2, 2))
    assert of_model.update(set()) == []
    assert facts[0].parameter is old
    assert of_model.look(set()) == [facts[0]]
    assert facts[0].parameter is model.weight


def test_an_optimizer_that_steps_what_the_model_no_longer_has_is_told():
    model = nn.Linear(2, 2)
    of, facts, of_model = resolver(model)
    old = model.weight
    model.weight = nn.Parameter(torch.ones(2, 2))
    assert of_model.look({id(old)}) == []
    assert facts[0].parameter is old
    assert "make the optimizer anew" in of.writer.events[0][2]


def test_modules_that_were_replaced_are_told_once():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    of, _, of_model = resolver(model)
    model[1] = nn.Linear(2, 3)
    of_model.look(set())
    of_model.look(set())
    texts = [message for _, _, message, _, _ in of.writer.events]
    assert sum("the modules at '1' were replaced" in text for text in texts) == 1
