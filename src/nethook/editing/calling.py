"""Calling an edit: how a function wants to be called is decided once, when it is attached."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Protocol

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.errors import EditError, InPlaceEditError
from nethook.hooks.modes import modes_are_active, quiet
from nethook.torch_private import version_of

# What an edit becomes: the value and the address, to the new value or None for no change.
Apply = Callable[[Any, str], Any]
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Written(Protocol):
    """What was written where, for messages."""

    @property
    def what(self) -> str:
        """In words."""


def call_form(function: Callable[..., Any], written: Written) -> Apply:
    """How to call `function` with a value and the site it stands at.

    The site goes to a parameter named `site`, or to a second one that must be given.
    """
    if takes_value_alone(function):
        return lambda value, _: function(value)
    required, takes_site = parameters_of(function)
    if takes_site:
        return lambda value, site: function(value, site=site)
    if required > 2:
        raise EditError(
            f"the edit at {written.what} takes {required} arguments that must be given; an edit is "
            "called with the value, and with the address of its site if it takes a second one."
        )
    return function if required == 2 else lambda value, _: function(value)


def takes_value_alone(function: Callable[..., Any]) -> bool:
    """Whether it is a plain function that is sure to be called with the value and nothing else."""
    if type(function) is not FunctionType or "__wrapped__" in function.__dict__:
        return False
    code = function.__code__
    if code.co_argcount == 1 and not code.co_kwonlyargcount:
        return code.co_varnames[0] != "site"
    return parameters_of(function) in ((1, False), (0, False))


def parameters_of(function: Callable[..., Any]) -> tuple[int, bool]:
    """How many positional arguments must be given, and whether one may be named `site`."""
    kinds = (FunctionType, MethodType)
    if isinstance(function, kinds) and not hasattr(function, "__wrapped__"):
        # Nearly all edits, and many times quicker than asking `inspect`.
        code = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        bound = isinstance(function, MethodType)
        return code.co_argcount - len(function.__defaults__ or ()) - bound, "site" in names
    if isinstance(function, nn.Module):
        return 1, False
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin such as torch.relu does not say what it takes
        return 1, False
    takes_site = any(e.name == "site" and e.kind is not e.VAR_KEYWORD for e in parameters)
    return sum(e.kind in _POSITIONAL and e.default is e.empty for e in parameters), takes_site


def not_in_place(apply: Apply, value: Any, site: str) -> Any:
    """Applies an edit, and refuses one that changed its argument and returned None."""
    before = _versions(value)
    new = apply(value, site)
    if new is None and before != _versions(value):
        raise wrote_in_place(site)
    return new


def wrote_in_place(site: str) -> InPlaceEditError:
    """The error for an edit that changed its argument and returned None."""
    return InPlaceEditError(
        f"the edit at {site!r} wrote to its argument in place and returned None. Return "
        "the new value instead: `return value * 2`, not `value.mul_(2)`."
    )


def _versions(value: Any) -> list[int]:
    if type(value) is torch.Tensor and not modes_are_active():
        return [0 if value.is_inference() else version_of(value)]
    with quiet():
        return [0 if each.is_inference() else version_of(each) for _, each in tensors(value)]
