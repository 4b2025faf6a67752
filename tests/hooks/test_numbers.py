"""Our hooks take no number that a hook of the user's would have got."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.utils.hooks import RemovableHandle

import nethook
from nethook.hooks.attachment import Attachment, register_on_tensor, seconds_of_a_hook
from nethook.hooks.autograd.gradients import ask_quickly
from nethook.hooks.hook import Owner
from nethook.hooks.layouts.unhookable import RouterPair
from nethook.hooks.numbers import next_number, renumbered
from nethook.hooks.process.discovery import Discovery
from nethook.hooks.process.optimizers import on_every_step
from tests.hooks.common import Spy, net

Register = Callable[[nn.Module, Attachment], object]


def _root(model: nn.Module) -> Any:
    return model(torch.ones(2, 4)).sum().grad_fn


def _newcomers(model: nn.Module, hooks: Attachment) -> None:
    newcomers = Discovery(
        "nethook.test", called=lambda *_: None, stepped=lambda _: None, built=lambda: None
    )
    newcomers.turn_on()
    hooks.add(newcomers)


def _step(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), 0.1)


KINDS: dict[str, Register] = {
    "forward": lambda model, hooks: hooks.forward(model, Spy(), always_call=True, with_kwargs=True),
    "forward_pre": lambda model, hooks: hooks.forward_pre(model, Spy()),
    "every_forward": lambda _, hooks: hooks.every_forward(Spy(), always_call=True),
    "every_forward_pre": lambda _, hooks: hooks.every_forward_pre(Spy()),
    "routed": lambda model, hooks: RouterPair(hooks).forward(model, Spy()),
    "tensor": lambda model, hooks: hooks.tensor(next(model.parameters()), Spy()),
    "accumulated": lambda model, hooks: hooks.accumulated(next(model.parameters()), Spy()),
    "node": lambda model, hooks: hooks.node(_root(model), Spy()),
    "node_before": lambda model, hooks: hooks.node(_root(model), Spy(), before=True),
    "step": lambda model, hooks: hooks.optimizer_step(_step(model), Spy()),
    "step_before": lambda model, hooks: hooks.optimizer_step(_step(model), Spy(), before=True),
    "every_step": lambda _, hooks: on_every_step(hooks, Spy(), Spy()),
    "newcomers": _newcomers,
    "in_the_graph": lambda model, _: ask_quickly(model(torch.ones(2, 4)), Spy()),
    "measured": lambda *_: seconds_of_a_hook.__wrapped__(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_hook_of_the_user_has_the_number_it_would_have(kind: str) -> None:
    model, free = net(), RemovableHandle.next_id
    with Attachment(Owner("nethook.test")) as hooks:
        KINDS[kind](model, hooks)
        assert RemovableHandle.next_id == free
        theirs = model.register_forward_hook(lambda *_: None)
        assert theirs.id == free
    assert list(model._forward_hooks) == [free]
    theirs.remove()


def test_a_renumbered_hook_is_called_and_removed_like_any_other() -> None:
    leaf, seen = torch.ones(2, requires_grad=True), []
    before = leaf.register_hook(lambda _: seen.append("before"))
    spy = Spy()
    handle = register_on_tensor(leaf, spy)
    after = leaf.register_hook(lambda _: seen.append("after"))
    assert after.id == before.id + 1
    assert list(leaf._backward_hooks) == [before.id, handle.id, after.id]
    leaf.sum().backward()
    assert seen == ["before", "after"]
    assert len(spy.seen) == 1
    handle.remove()
    handle.remove()
    leaf.sum().backward()
    assert len(spy.seen) == 1
    assert list(leaf._backward_hooks) == [before.id, after.id]


def test_a_number_is_not_given_back_when_others_were_given_out_since() -> None:
    model = net()
    first = model.register_forward_hook(lambda *_: None, always_call=True)
    second = model.register_forward_hook(lambda *_: None)
    number = first.id
    renumbered(first)
    assert RemovableHandle.next_id == second.id + 1
    assert number not in model._forward_hooks
    assert first.id in model._forward_hooks
    assert list(model._forward_hooks_always_called) == [first.id]
    first.remove()
    assert not model._forward_hooks_always_called


def test_numbers_are_never_given_out_twice_and_never_reach_torch() -> None:
    numbers = [next_number() for _ in range(100)]
    assert len(set(numbers)) == 100
    assert min(numbers) > 1 << 40 > RemovableHandle.next_id


def test_flags_of_hooks_on_every_module_are_taken_off() -> None:
    with Attachment(Owner("nethook.test")) as hooks:
        hooks.every_forward(Spy(), with_kwargs=True, always_call=True)
        assert module_hooks._global_forward_hooks_with_kwargs
    assert not module_hooks._global_forward_hooks
    assert not module_hooks._global_forward_hooks_with_kwargs
    assert not module_hooks._global_forward_hooks_always_called


def test_scopes_take_no_numbers(tmp_path) -> None:
    model, free = net(), RemovableHandle.next_id
    every = {"inputs": True, "grads": True, "input_grads": True, "param_grads": True}
    optimizer = _step(model)
    with (
        nethook.watch(model, optimizer, to=tmp_path / "run.db"),
        nethook.trace(model, nodes=True, **every),
        nethook.trace(model, "**/*"),
        nethook.edit(model, outputs={"0": lambda value: value}, grads={"0": lambda grad: grad}),
    ):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).square().sum().backward()
            optimizer.step()
    assert RemovableHandle.next_id == free
