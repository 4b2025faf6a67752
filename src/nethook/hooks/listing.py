"""Where torch keeps hooks: every dict of hooks on a model, its parameters, and on all modules."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple

from torch.nn.modules import module as module_hooks
from torch.optim import optimizer as optimizer_module

from nethook.addresses.tree import Tree

# attribute of a module, and what the hooks in it are called
OF_MODULES = (
    ("_forward_pre_hooks", "forward_pre"),
    ("_forward_hooks", "forward"),
    ("_backward_pre_hooks", "backward_pre"),
    ("_backward_hooks", "backward"),
    ("_state_dict_pre_hooks", "state_dict_pre"),
    ("_state_dict_hooks", "state_dict"),
    ("_load_state_dict_pre_hooks", "load_state_dict_pre"),
    ("_load_state_dict_post_hooks", "load_state_dict_post"),
)
OF_TENSORS = (
    ("_backward_hooks", "gradient"),
    ("_post_accumulate_grad_hooks", "accumulated_gradient"),
)
_ON_ALL_MODULES = (
    ("_global_forward_pre_hooks", "global_forward_pre"),
    ("_global_forward_hooks", "global_forward"),
    ("_global_backward_pre_hooks", "global_backward_pre"),
    ("_global_backward_hooks", "global_backward"),
    ("_global_buffer_registration_hooks", "global_buffer_registration"),
    ("_global_module_registration_hooks", "global_module_registration"),
    ("_global_parameter_registration_hooks", "global_parameter_registration"),
)
_ON_ALL_OPTIMIZERS = (
    ("_global_optimizer_pre_hooks", "global_optimizer_step_pre"),
    ("_global_optimizer_post_hooks", "global_optimizer_step"),
)
# Dicts in which torch notes how a module's hook is called, by the hook's number.
OPTIONS = {
    "forward_pre": ("_forward_pre_hooks_with_kwargs",),
    "forward": ("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
}


class HookDict(NamedTuple):
    """One dict of hooks: where it is, of what kind, and the dicts of options beside it."""

    address: str
    kind: str
    hooks: MutableMapping[int, Any]
    options: tuple[MutableMapping[int, Any], ...] = ()


def hooks_on(tree: Tree) -> Iterator[HookDict]:
    """The hook dicts of a model that hold anything: modules, then parameters and buffers."""
    places = [(site.address, site.module) for site in tree.sites]
    for address, module in [*places, *tree.wrappers]:
        for attribute, kind in OF_MODULES:
            hooks = getattr(module, attribute)
            if hooks:
                options = tuple(getattr(module, name) for name in OPTIONS.get(kind, ()))
                yield HookDict(address, kind, hooks, options)
    for site in tree.parameters().sites:
        for attribute, kind in OF_TENSORS:
            hooks = getattr(site.tensor, attribute, None)
            if hooks:
                yield HookDict(site.address, kind, hooks)


def optimizer_hooks() -> Iterator[HookDict]:
    """The dicts of hooks that torch calls at every step of every optimizer."""
    for attribute, kind in _ON_ALL_OPTIMIZERS:
        hooks = getattr(optimizer_module, attribute)
        if hooks:
            yield HookDict("*", kind, hooks)


def global_hooks() -> Iterator[HookDict]:
    """The dicts of hooks that torch calls for every module."""
    for attribute, kind in _ON_ALL_MODULES:
        hooks = getattr(module_hooks, attribute)
        if hooks:
            yield HookDict("*", kind, hooks)
