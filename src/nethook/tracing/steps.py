"""Which forwards of a generation read the prompt, and which make one more token.

A generation loop calls the model once for the prompt and then once a token. What tells them apart
is how many positions a forward is given: the size of dimension 1 of the first argument (in the
order of the model's signature) that is a tensor with two dimensions or more. A forward is a
decoding step if there was one before it and

    it has one position                        the others are in a cache; or
    it has those of the last forward and one   no cache: the whole sequence is computed again.

Every other forward reads a prompt, or a further piece of one.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn


class Given(NamedTuple):
    """The first two sizes of each tensor that a forward was given: by position, and by name."""

    args: tuple[tuple[int, int], ...]
    kwargs: dict[str, tuple[int, int]]


def note(args: Sequence[Any], kwargs: dict[str, Any] | None) -> Given:
    """What to remember of the arguments of one forward."""
    return Given(
        tuple(_sizes(each) for each in args if _has_positions(each)),
        {name: _sizes(each) for name, each in (kwargs or {}).items() if _has_positions(each)},
    )


def _has_positions(value: object) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_nested and value.dim() >= 2


def _sizes(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.shape[0], tensor.shape[1]


def number(forwards: Sequence[Given], model: nn.Module | None) -> list[int]:
    """For each forward, how many decoding steps lie between it and its prompt; 0 for a prompt."""
    order = [] if model is None else _parameter_names(model)
    steps: list[int] = []
    before: tuple[int, int] | None = None
    for given in forwards:
        now = _first(given, order)
        decodes = (
            before is not None
            and now is not None
            and (now[1] == 1 or now == (before[0], before[1] + 1))
        )
        steps.append(steps[-1] + 1 if decodes else 0)
        before = now
    return steps


def _first(given: Given, order: list[str]) -> tuple[int, int] | None:
    if given.args:
        return given.args[0]
    named = [name for name in order if name in given.kwargs]
    return given.kwargs[named[0]] if named else next(iter(given.kwargs.values()), None)


def _parameter_names(model: nn.Module) -> list[str]:
    try:
        return list(inspect.signature(model.forward).parameters)
    except (TypeError, ValueError):
        return []  # written in C, or too odd: the order of the call has to do
