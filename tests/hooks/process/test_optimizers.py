"""Steps of every optimizer, and finding them."""

from __future__ import annotations

import gc
import sys

import pytest
import torch
from torch import nn

import nethook
from nethook.hooks.attachment import Attachment
from nethook.hooks.autograd.gradients import ask_quickly
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.process.optimizers import (
    holds,
    objects_by_age,
    on_every_step,
    optimizers_holding,
)
from tests.modes.compiling import fresh


class Note(Hook):
    __slots__ = ("seen",)

    def __init__(self, seen):
        super().__init__(Owner("test"), "*")
        self.seen = seen

    def __call__(self, *given):
        self.seen.append(given[0])


def test_every_step_is_seen_until_the_hooks_are_removed():
    model = nn.Linear(2, 1)
    optimizers = [torch.optim.SGD(model.parameters(), 0.1), torch.optim.Adam(model.parameters())]
    seen = []
    with Attachment(Owner("test")) as hooks:
        on_every_step(hooks, Note(seen), Note(seen))
        for each in optimizers:
            each.step()
    optimizers[0].step()
    assert [optimizers.index(each) for each in seen] == [0, 0, 1, 1]


class Plain(Note):
    """Does what no compiler can follow, and says whether one tried to."""

    __slots__ = ()

    def __call__(self, *given):
        import sys

        self.seen.append((sys._getframe(0).f_code.co_name, torch.compiler.is_compiling()))


@pytest.mark.filterwarnings("ignore")  # Dynamo has many
def test_a_compiled_step_calls_the_hooks_as_they_are():
    model, seen = nn.Linear(2, 1), []
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    before = nethook.audit(model)
    with fresh():
        step = torch.compile(optimizer.step, backend="aot_eager")
        with Attachment(Owner("test")) as hooks:
            on_every_step(hooks, Plain(seen), Plain(seen))
            for _ in range(3):
                model(torch.ones(3, 2)).sum().backward()
                step()
                assert [each.owner for each in nethook.audit(model)] == ["test", "test"]
        assert nethook.audit(model) == before
        assert seen == [("__call__", False)] * 6
        step()
        assert len(seen) == 6


@pytest.mark.filterwarnings("ignore")
def test_a_step_that_must_be_one_graph_is_refused_with_the_reason():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    model(torch.ones(3, 2)).sum().backward()
    with fresh(), Attachment(Owner("test")) as hooks:
        on_every_step(hooks, Plain([]), Plain([]))
        step = torch.compile(optimizer.step, backend="aot_eager", fullgraph=True)
        with pytest.raises(torch._dynamo.exc.Unsupported, match="nethook follows the steps"):
            step()


def test_optimizers_are_found_by_what_they_hold():
    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    assert optimizers_holding(model.parameters()) == [optimizer]
    assert optimizers_holding(other.parameters()) == []
    assert holds(optimizer, {id(model.bias)})


def gradients(make):
    seen = []
    x = torch.randn(2, 3, 4, requires_grad=True)
    out = make(x, lambda tensor, *given: ask_quickly(tensor, Note(seen), given))
    out.sum().backward()
    return seen


def test_a_view_that_is_written_in_place_still_has_its_gradient():
    layer = nn.Linear(4, 5)

    def make(x, ask):
        out = layer(x)  # a view of what was computed
        ask(out, x)
        out += 1
        return out * 3

    (grad,) = gradients(make)
    assert torch.equal(grad.reshape(-1), torch.full((30,), 3.0))


def test_hooks_of_the_user_stay_beside_it():
    others = []

    def make(x, ask):
        out = x * 2
        out.register_hook(others.append)
        ask(out)
        out.register_hook(others.append)
        return out

    assert len(gradients(make)) == 1
    assert len(others) == 2


def test_a_leaf_is_not_asked():
    seen = []
    leaf = torch.ones(2, requires_grad=True)
    ask_quickly(leaf, Note(seen))
    leaf.sum().backward()
    assert seen == []
    assert not leaf._backward_hooks


def test_what_passes_through_is_asked_itself():
    def make(x, ask):
        hidden = x * 1
        flat = hidden.flatten(1)
        ask(flat, hidden)
        return flat.sum() + 5 * hidden.sum()

    (grad,) = gradients(make)
    assert torch.equal(grad, torch.ones(2, 12))


def test_objects_are_listed_oldest_first_whatever_generation_they_are_in():
    parameter = torch.nn.Parameter(torch.zeros(1))
    older = torch.optim.SGD([parameter], 0.1)
    gc.collect()  # which makes it old
    younger = torch.optim.Adam([parameter], 0.1)
    listed = objects_by_age({torch.optim.SGD, torch.optim.Adam})
    assert listed.index(older) < listed.index(younger)
    assert optimizers_holding([parameter]) == [older, younger]


def test_no_object_is_missed_whenever_a_collection_comes():
    parameter = torch.nn.Parameter(torch.zeros(1))
    thresholds = gc.get_threshold()
    gc.freeze()  # to look through what other tests have left would take seconds
    try:
        for more in range(12):
            optimizer = torch.optim.SGD([parameter], 0.1)
            gc.set_threshold(gc.get_count()[0] + more, 1000, 1000)
            assert objects_by_age({torch.optim.SGD}).count(optimizer) == 1
            gc.set_threshold(*thresholds)
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def test_looking_through_all_objects_keeps_none_of_them():
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], 0.1)
    gc.collect()
    gc.disable()  # which would break a circle of lists
    try:
        before = sys.getrefcount(optimizer)
        assert optimizers_holding([parameter]) == [optimizer]
        assert sys.getrefcount(optimizer) == before
    finally:
        gc.enable()
