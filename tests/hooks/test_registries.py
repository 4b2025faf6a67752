"""Where torch keeps hooks: every dict that torch has is looked at, and no empty one is named."""

import re
from collections import OrderedDict
from pathlib import Path

import torch
from torch import nn
from torch.nn.modules import module as module_hooks

from nethook.addresses.tree import Tree
from nethook.hooks.registries import global_hooks, hooks_on
from nethook.torch_private import HOOKS_OF_MODULES, HOOKS_ON_ALL_MODULES, OPTIONS_OF_HOOKS


def listed(model: nn.Module) -> list[tuple[str, str, int]]:
    return [(place.address, place.kind, len(place.hooks)) for place in hooks_on(Tree(model))]


def test_every_dict_of_hooks_that_torch_gives_a_module_is_known():
    names = {name for name, value in vars(nn.Module()).items() if isinstance(value, OrderedDict)}
    hooks = {name for name in names if "hooks" in name} - {"_non_persistent_buffers_set"}
    options = {name for each in OPTIONS_OF_HOOKS.values() for name in each}
    assert hooks == set(HOOKS_OF_MODULES.values()) | options


def test_every_dict_of_hooks_on_all_modules_is_known():
    source = Path(module_hooks.__file__).read_text()
    names = set(re.findall(r"^(_global_\w+_hooks): ", source, re.MULTILINE))
    assert names == set(HOOKS_ON_ALL_MODULES.values())


def test_what_the_kinds_are_called():
    names = ["forward_pre", "forward", "backward_pre", "backward"]
    states = ["state_dict_pre", "state_dict", "load_state_dict_pre", "load_state_dict_post"]
    things = [f"global_{thing}_registration" for thing in ("buffer", "module", "parameter")]
    assert list(HOOKS_OF_MODULES) == [*names, *states]
    assert list(HOOKS_ON_ALL_MODULES) == [*(f"global_{name}" for name in names), *things]


def test_a_model_without_hooks_has_no_places():
    assert listed(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))) == []


def test_places_come_in_model_order_modules_first():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[1].register_forward_hook(print)
    model[1].register_forward_hook(print)
    model[0].weight.register_hook(print)
    model[1].weight.register_post_accumulate_grad_hook(print)
    model[0].register_forward_pre_hook(print)
    model.register_forward_hook(print)
    assert listed(model) == [
        ("", "forward", 1),
        ("0", "forward_pre", 1),
        ("1", "forward", 2),
        ("0.weight", "gradient", 1),
        ("1.weight", "accumulated_gradient", 1),
    ]


def test_the_dicts_are_the_ones_of_torch_with_the_options_beside_them():
    model = nn.Linear(2, 2)
    model.register_forward_hook(print, with_kwargs=True)
    model.register_forward_pre_hook(print)
    model.register_state_dict_pre_hook(print)
    pre, forward, state = hooks_on(Tree(model))
    assert forward.hooks is model._forward_hooks
    assert forward.options[0] is model._forward_hooks_with_kwargs
    assert forward.options[1] is model._forward_hooks_always_called
    assert len(forward.options) == 2
    assert pre.hooks is model._forward_pre_hooks
    assert [option is model._forward_pre_hooks_with_kwargs for option in pre.options] == [True]
    assert state.options == ()


def test_hooks_of_wrappers_and_of_buffers_are_found():
    inner = nn.Linear(2, 2)
    inner.register_buffer("scale", torch.ones(1, requires_grad=True))
    inner.scale.register_hook(print)
    outer = nn.DataParallel(inner)
    outer.register_forward_hook(print)
    assert listed(outer) == [("", "forward", 1), ("scale", "gradient", 1)]


def test_hooks_on_all_modules():
    assert list(global_hooks()) == []
    handle = module_hooks.register_module_forward_pre_hook(print)
    [place] = global_hooks()
    assert place.address == "*"
    assert place.kind == "global_forward_pre"
    assert place.hooks is module_hooks._global_forward_pre_hooks
    handle.remove()
    assert list(global_hooks()) == []
