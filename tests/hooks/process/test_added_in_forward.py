"""Hooks that a forward puts on are taken off; hooks of nethook and of others stay."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.hooks.process.added_in_forward import HooksOfModule, HooksOfTensor


def nothing(*_: Any, **__: Any) -> None:
    """A hook."""


def tables(module: nn.Module) -> dict[str, list[Any]]:
    return {name: list(each.items()) for name, each in vars(module).items() if "_hooks" in name}


@pytest.mark.parametrize("other", [False, True])
def test_what_was_put_on_is_taken_off(other: bool) -> None:
    module = nn.Linear(2, 2)
    if other:
        module.register_forward_hook(nothing, with_kwargs=True)
    before = tables(module)
    saved = HooksOfModule(module)
    module.register_forward_hook(nothing, always_call=True)
    module.register_forward_pre_hook(nothing, with_kwargs=True)
    module.register_full_backward_hook(nothing)
    module.register_load_state_dict_pre_hook(nothing)
    saved.put_back()
    assert tables(module) == before
    assert module._is_full_backward_hook is None


def test_hooks_of_nethook_stay_as_they_are() -> None:
    module = nn.Linear(2, 2)
    saved = HooksOfModule(module)
    scope = nethook.trace(module, "")
    with scope as tape:
        module.register_forward_hook(nothing)
        saved.put_back()
        module(torch.ones(1, 2))
        assert nothing not in module._forward_hooks.values()
        saved = HooksOfModule(module)
    saved.put_back()  # those that were taken off do not come back
    assert tape[""].output.shape == (1, 2)
    assert not nethook.audit(module)


def test_what_was_taken_off_stays_off_unless_it_is_a_method_of_a_module() -> None:
    module = nn.Linear(2, 2)
    one = module.register_forward_hook(nothing)
    own = module.register_forward_pre_hook(module.extra_repr)
    saved = HooksOfModule(module)
    one.remove()
    own.remove()
    saved.put_back()
    assert not module._forward_hooks
    assert list(module._forward_pre_hooks.values()) == [module.extra_repr]
    own.remove()  # its handle is as good as before
    assert not module._forward_pre_hooks


def test_a_table_that_was_replaced_is_the_old_one_again() -> None:
    module = nn.Linear(2, 2)
    handle = module.register_forward_hook(nothing)
    table = module._forward_hooks
    saved = HooksOfModule(module)
    module._forward_hooks = OrderedDict(table)
    saved.put_back()
    assert module._forward_hooks is table
    assert list(table.values()) == [nothing]
    handle.remove()
    assert not table


def test_hooks_on_a_parameter() -> None:
    weight = nn.Parameter(torch.ones(2))
    weight.register_hook(nothing)
    saved = HooksOfTensor(weight)
    weight.register_hook(lambda grad: grad * 2)
    weight.register_post_accumulate_grad_hook(nothing)
    saved.put_back()
    assert list(weight._backward_hooks.values()) == [nothing]
    assert not weight._post_accumulate_grad_hooks
    weight.sum().backward()
    assert weight.grad.tolist() == [1, 1]
