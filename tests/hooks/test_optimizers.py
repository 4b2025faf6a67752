"""Steps of every optimizer, and finding them."""

from __future__ import annotations

import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.gradients import ask_quickly
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.optimizers import holds, on_every_step, optimizers_holding


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
