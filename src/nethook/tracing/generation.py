"""Which forwards of a generation read the prompt, and which make one more token.

A generation loop calls the model once for the prompt and then once per token. What tells them apart
is how many positions the arguments of a forward have: the size of dimension 1 of each tensor with
two or three dimensions (tokens, masks, embeddings). A forward is a decoding step if there was one
before it, and

    some argument has one position                     the others are in a cache; or
    some argument has one more than in the last forward  no cache, everything is computed again;

and every other argument has as many as before, or one more. Every other forward reads a prompt, or
a further piece of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import torch

from nethook.hooks.modes import modes_are_active, quiet

Given: TypeAlias = dict[int | str, tuple[int, int]]
"""By position or name, the first two sizes of the arguments of one forward."""


def note(args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> Given:
    """What to remember of the arguments of one forward."""
    noted: Given = {}
    named: Iterable[tuple[int | str, Any]] = enumerate(args)
    if kwargs:
        named = chain(named, kwargs.items())
    for name, value in named:
        if type(value) is torch.Tensor and not modes_are_active():
            sizes = _sizes(value)
        elif isinstance(value, torch.Tensor):
            with quiet():
                sizes = _sizes(value)
        else:
            continue
        if sizes is not None:
            noted[name] = sizes
    return noted


def _sizes(value: torch.Tensor) -> tuple[int, int] | None:
    if value.is_nested or value.dim() not in (2, 3):
        return None
    shape = value.shape
    return shape[0], shape[1]


def number(forwards: Sequence[Given]) -> list[int]:
    """For each forward, how many decoding steps lie between it and its prompt; 0 for a prompt."""
    steps: list[int] = []
    for index, given in enumerate(forwards):
        decodes = index > 0 and _decodes(forwards[index - 1], given)
        steps.append(steps[-1] + 1 if decodes else 0)
    return steps


def _decodes(before: Given, now: Given) -> bool:
    one = any(positions == 1 for _, positions in now.values())
    grew = False
    for name in before.keys() & now.keys():
        (rows_before, had), (rows, has) = before[name], now[name]
        if has == had + 1 and rows == rows_before:
            grew = True
        elif has not in (1, had):
            return False
    return one or grew
