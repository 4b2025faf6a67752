"""What is trained is found from its highest owner, and nothing else is taken for it."""

from __future__ import annotations

import copy
import sys
import weakref
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from nethook.running.detecting.discover import (
    Census,
    census_of,
    leaves_behind,
    name_of,
    take_census,
    trainees,
    unheld,
)
from nethook.stats.native import kernel
from nethook.watching.loop.loose_tensors import LooseTensors


class Whole(nn.Module):
    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)


def net(width: int = 4) -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 2))


def census(*objects: object) -> Census:
    """Of these and of every module in them, as if nothing else were alive."""
    found: list[object] = []
    for each in objects:
        found += each.modules() if isinstance(each, nn.Module) else [each]
    return census_of(dict.fromkeys(found))


def sgd(*modules: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD([p for module in modules for p in module.parameters()], lr=0.1)


def test_the_highest_owner_is_found_whatever_part_of_it_is_called() -> None:
    model = net()
    owner = Whole(backbone=model, criterion=nn.CrossEntropyLoss())
    for part in owner.modules():
        assert trainees(census(owner, sgd(owner)), part, set()) == [owner]


def test_several_models_are_found_at_once_and_the_one_that_is_called_first() -> None:
    one, other = net(), net()
    alive = census(one, other, sgd(one), sgd(other))
    assert trainees(alive, one, set()) == [one, other]
    assert trainees(alive, other[0], set()) == [other, one]


def test_a_parametrization_that_is_called_while_it_is_made_is_no_model() -> None:
    layer = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))
    (part,) = layer.parametrizations.children()
    assert trainees(census(part), part, set()) == []
    assert trainees(census(layer), part, set()) == [layer]


def test_what_is_followed_already_is_not_found_again() -> None:
    one, other = net(), net()
    covered = {id(parameter) for parameter in one.parameters()}
    assert trainees(census(one, other, sgd(one), sgd(other)), one, covered) == [other]
    assert trainees(census(one, sgd(one)), one, covered) == []


def test_losses_metrics_teachers_and_averages_are_told_apart() -> None:
    student, teacher = net(), net(8).requires_grad_(False)
    average = torch.optim.swa_utils.AveragedModel(student)
    copied = copy.deepcopy(student)
    others = [teacher, average, copied, nn.CrossEntropyLoss(), nn.PReLU()]
    for called in (student, *others):
        assert trainees(census(student, *others, sgd(student)), called, set()) == [student]


def test_a_wrapper_counts_as_the_owner() -> None:
    model = net()
    compiled = torch.compile(model, backend="eager")
    assert trainees(census(compiled, sgd(model)), model, set()) == [compiled]


def test_of_two_owners_of_the_same_the_one_that_is_called_is_meant() -> None:
    encoder = net()
    old, new = Whole(encoder=encoder, decoder=net()), Whole(encoder=encoder, head=net())
    optimizer = sgd(encoder)
    assert trainees(census(old, new, optimizer), new, set()) == [new]
    assert trainees(census(old, new, optimizer), old, set()) == [old]
    # Called from the part that both have, the smaller one is meant.
    old.add_module("more", net())
    assert trainees(census(old, new, optimizer), encoder, set()) == [new]


def test_without_any_optimizer_what_is_called_with_gradient_is_meant() -> None:
    model, frozen = net(), net().requires_grad_(False)
    loss = nn.CrossEntropyLoss()
    alive = census(model, frozen, loss)
    assert trainees(alive, model[0], set()) == [model]
    assert trainees(alive, frozen, set()) == []
    assert trainees(alive, loss, set()) == []
    with torch.no_grad():
        assert trainees(alive, model, set()) == []


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_script_modules_cannot_be_followed() -> None:
    scripted = torch.jit.script(net())
    assert trainees(census(scripted, sgd(scripted)), scripted, set()) == []


def test_parameters_of_no_module_and_half_built_modules_do_no_harm() -> None:
    half = nn.Module.__new__(nn.Module)
    model, image = net(), nn.Parameter(torch.zeros(3))
    painter = torch.optim.SGD([image], lr=0.1)
    assert trainees(census_of([half, painter, *model.modules()]), model, set()) == []


def test_a_model_has_the_name_of_its_variable_or_attribute() -> None:
    main = vars(sys.modules["__main__"])
    generator = net()
    assert name_of(generator) == "Sequential"
    main["generator_of_this_test"] = generator
    try:
        assert name_of(generator) == "generator_of_this_test"
        assert name_of(torch.compile(generator, backend="eager")) == "generator_of_this_test"
    finally:
        del main["generator_of_this_test"]

    class Trainer:
        def __init__(self) -> None:
            self.critic = generator

    trainer = Trainer()
    assert name_of(generator) == "critic"
    assert trainer.critic is generator


def test_finding_a_name_keeps_nothing_alive() -> None:
    def train() -> weakref.ref[nn.Module]:
        model = net()
        ref = weakref.ref(model)
        name_of(model)
        model = net()
        name_of(model)
        return ref

    assert train()() is None


def test_a_model_that_was_made_anew_after_its_optimizer() -> None:
    old, new, other = net(), net(), net(7)
    optimizer = sgd(old)
    # The old one is gone, and its parameters live on in the optimizer.
    assert trainees(census(new, optimizer), new[0], set()) == [new]
    assert trainees(census(other, optimizer), other, set()) == []
    with torch.no_grad():
        assert trainees(census(new, optimizer), new, set()) == []
    # A picture that is being optimised is no model, and what looks at it is not trained.
    picture = torch.optim.Adam([nn.Parameter(torch.zeros(1, 3, 8, 8))])
    assert trainees(census(new, picture), new, set()) == []


def loss_of(model: nn.Module) -> torch.Tensor:
    return model(torch.ones(2, 3)).sum()


def test_a_model_that_no_optimizer_holds_is_behind_its_backward_pass() -> None:
    model, other = Whole(net=net()), net()
    model.forward = model.net.forward  # type: ignore[assignment, operator]
    leaves = leaves_behind([loss_of(model)])
    assert leaves.keys() == {id(parameter) for parameter in model.parameters()}
    old = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
    assert list(unheld(census(model, other, old), leaves).values()) == [model]


def test_where_an_optimizer_has_a_leaf_nothing_is_found() -> None:
    model, image = net(), torch.ones(2, 3, requires_grad=True)
    leaves = leaves_behind([model(image).sum()])
    assert unheld(census(model, torch.optim.SGD([image], lr=0.1)), leaves) == {}
    assert unheld(census(model, sgd(model)), leaves) == {}


def test_tensors_of_no_module_are_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    w, b = torch.ones(3, 2, requires_grad=True), torch.zeros(2, requires_grad=True)
    main = SimpleNamespace(w=w, x=torch.ones(4, 3), each=w)
    monkeypatch.setitem(sys.modules, "__main__", main)
    found = unheld(census(), leaves_behind([(main.x @ w + b).sum()]))
    assert list(found) == ["tensors"]
    assert isinstance(found["tensors"], LooseTensors)
    named = dict(found["tensors"].named_parameters())
    assert named["w"] is w
    assert any(tensor is b for tensor in named.values())
    assert len(named) == 2


def test_a_loss_that_is_a_leaf_has_nothing_behind_it() -> None:
    assert leaves_behind([torch.ones(1, requires_grad=True)]) == {}


def test_a_census_is_the_same_with_and_without_the_native_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = net()
    optimizers = [sgd(model), torch.optim.Adam(model.parameters())]
    found = take_census()
    assert model in found.roots
    assert [one for one in found.optimizers if one in optimizers] == optimizers
    monkeypatch.setattr(kernel, "functions", None)
    again = take_census()
    assert [id(root) for root in again.roots] == [id(root) for root in found.roots]
    assert [id(one) for one in again.optimizers] == [id(one) for one in found.optimizers]
