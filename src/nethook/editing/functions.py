"""Calling an edit: how a function wants to be called is decided once, when it is attached."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.errors import EditError, InPlaceEditError
from nethook.hooks.quiet import quiet

# What an edit becomes: the value and the address, to the new value or None for no change.
Apply = Callable[[Any, str], Any]
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def call_form(function: Callable[..., Any], what: str) -> Apply:
    """How to call `function` with a value and the site it stands at.

    The site goes to a parameter named `site`, or to a second one that must be given.
    """
    if isinstance(function, nn.Module):
        return lambda value, _: function(value)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin such as torch.relu does not say what it takes
        return lambda value, _: function(value)
    if any(each.name == "site" and each.kind is not each.VAR_KEYWORD for each in parameters):
        return lambda value, site: function(value, site=site)
    required = [e for e in parameters if e.kind in _POSITIONAL and e.default is e.empty]
    if len(required) > 2:
        raise EditError(
            f"the edit at {what} takes {len(required)} arguments that must be given; an edit is "
            "called with the value, and with the address of its site if it takes a second one."
        )
    if len(required) == 2:
        return function
    return lambda value, _: function(value)


def not_in_place(apply: Apply, value: Any, site: str) -> Any:
    """Applies an edit, and refuses one that changed its argument and returned None."""
    with quiet():
        before = [_version(tensor) for _, tensor in tensors(value)]
    new = apply(value, site)
    if new is None:
        with quiet():
            after = [_version(tensor) for _, tensor in tensors(value)]
        if before != after:
            raise InPlaceEditError(
                f"the edit at {site!r} wrote to its argument in place and returned None. Return "
                "the new value instead: `return value * 2`, not `value.mul_(2)`."
            )
    return new


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version
