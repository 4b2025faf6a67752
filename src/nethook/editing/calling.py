"""Calling an edit: how a function wants to be called is decided once, when it is attached."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Protocol, TypeGuard

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.errors import EditError, InPlaceEditError
from nethook.hooks.modes import modes_are_active, quiet
from nethook.hooks.ops.mode import ops_are_seen, unseen
from nethook.torch_private import version_of

# What an edit becomes: the value and the address, to the new value or None for no change.
Apply = Callable[[Any, str], Any]
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


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
            f"The edit at {written.what} must take the value, and may take the address of its "
            f"site; got a function that requires {required} arguments. Give the others defaults."
        )
    return function if required == 2 else lambda value, _: function(value)


def takes_value_alone(function: Callable[..., Any]) -> bool:
    """Whether it is a function or method that is called with the value and nothing else."""
    if not _has_code(function):
        return False
    code, bound = function.__code__, isinstance(function, MethodType)
    if code.co_argcount == 1 + bound and not code.co_kwonlyargcount:
        return code.co_varnames[bound] != "site"
    return parameters_of(function) in ((1, False), (0, False))


def _has_code(function: Callable[..., Any]) -> TypeGuard[FunctionType | MethodType]:
    """Whether its parameters can be read off its code: many times quicker than `inspect`."""
    own = function.__func__ if type(function) is MethodType else function
    return type(own) is FunctionType and "__wrapped__" not in own.__dict__


def parameters_of(function: Callable[..., Any]) -> tuple[int, bool]:
    """How many positional arguments must be given, and whether one may be named `site`."""
    if _has_code(function):  # nearly always
        code = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        bound = isinstance(function, MethodType)
        return code.co_argcount - len(function.__defaults__ or ()) - bound, "site" in names
    parameters = signature_of(function)
    if parameters is None:
        return 1, False
    takes_site = any(p.name == "site" and p.kind is not p.VAR_KEYWORD for p in parameters)
    return sum(p.kind in POSITIONAL and p.default is p.empty for p in parameters), takes_site


def signature_of(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """What a function takes; None for one that is given the value alone.

    That is a module, and a builtin such as `torch.relu`, which does not say what it takes.
    """
    if isinstance(function, nn.Module):
        return None
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def call_unseen(function: Callable[..., Any], *args: Any) -> Any:
    """Calls a function of the user's. What it computes is not an operation of the model."""
    if not ops_are_seen():
        return function(*args)
    with unseen():
        return function(*args)


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
        return [0 if tensor.is_inference() else version_of(tensor) for _, tensor in tensors(value)]
