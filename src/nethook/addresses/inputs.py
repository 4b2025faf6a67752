"""The one convention for inputs: a tensor, a tuple, a mapping, or `nethook.inputs(...)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from nethook.errors import InputsError


@dataclass(frozen=True, eq=False)
class Inputs:
    """The arguments of one call: `args` by position, `kwargs` by name.

    `inputs[0]` is a positional argument, `inputs["mask"]` one passed by name.
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def call(self, function: Callable[..., Any]) -> Any:
        """`function(*args, **kwargs)`."""
        return function(*self.args, **self.kwargs)

    def __getitem__(self, key: int | str) -> Any:
        """The argument at a position, or of a name."""
        return self.kwargs[key] if isinstance(key, str) else self.args[key]

    def __len__(self) -> int:
        """How many arguments there are."""
        return len(self.args) + len(self.kwargs)


def inputs(*args: Any, **kwargs: Any) -> Inputs:
    """The arguments of a call, for functions of nethook that take inputs.

        nethook.inputs(tokens, attention_mask=mask)

    Wherever a function of nethook takes inputs, it takes one argument: a tensor, a tuple (by
    position), a mapping (by name), or what this function returns (both, and anything else).
    """
    return Inputs(args, kwargs)


def as_inputs(value: object) -> Inputs:
    """Any accepted form of inputs, as `Inputs`."""
    if isinstance(value, Inputs):
        return value
    if isinstance(value, torch.Tensor):
        return Inputs((value,))
    if isinstance(value, tuple):
        return Inputs(tuple(value))
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InputsError(
                    "`inputs` given as a mapping must have strings as keys, the names of keyword "
                    f"arguments; got {key!r} of type {type(key).__name__}. To pass the mapping "
                    "itself, write nethook.inputs(mapping)."
                )
        return Inputs((), dict(value))
    raise InputsError(
        "`inputs` must be a tensor, a tuple (positional arguments), a mapping (keyword arguments), "
        f"or nethook.inputs(*args, **kwargs); got {type(value).__name__}. To pass it as the only "
        "argument, write nethook.inputs(value)."
    )
