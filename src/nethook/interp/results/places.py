"""Places of an attribution: pixels, tokens, features; how the rest of a value is added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

PIXELS: Final = "pixels"  # (rows, channels, height, width)
TOKENS: Final = "tokens"  # (rows, tokens, width)
SIGNAL: Final = "samples"  # (rows, channels, length), and one long dimension
FEATURES: Final = "features"  # (rows, features)
WHOLE: Final = "elements"  # anything else
_MOST_CHANNELS = 4
_LONG = 128  # more than these are no columns of a table that somebody would name


def kind_of(shape: Sequence[int], *, is_input: bool) -> str:
    """What the places of a value are, from its shape."""
    if len(shape) == 4:
        return PIXELS
    if len(shape) == 3:
        channels = is_input and shape[1] <= _MOST_CHANNELS < shape[2]
        return SIGNAL if channels else TOKENS
    if len(shape) == 2:
        return SIGNAL if is_input and shape[1] > _LONG else FEATURES
    return WHOLE


def dim_of_channels(kind: str, ndim: int) -> int | None:
    """The dimension that is no place but has several numbers of each."""
    if kind == TOKENS:
        return ndim - 1
    if kind == PIXELS or (kind == SIGNAL and ndim == 3):
        return 1
    return None


def summed(values: torch.Tensor, kind: str) -> torch.Tensor:
    """Values added up per place: (rows, height, width), (rows, tokens) or (rows, features)."""
    dim = dim_of_channels(kind, values.ndim)
    return values if dim is None else values.sum(dim)


def largest(values: torch.Tensor, kind: str) -> torch.Tensor:
    """Per place, the value that is farthest from zero."""
    dim = dim_of_channels(kind, values.ndim)
    if dim is None:
        return values
    return values.gather(dim, values.abs().argmax(dim, keepdim=True)).squeeze(dim)


def place_names(shape: Sequence[int], kind: str, names: Sequence[str] | None) -> list[str]:
    """The places of one row in words, in order."""
    if names is not None:
        return [str(name) for name in names]
    if kind == PIXELS:
        height, width = shape
        return [f"{row}, {column}" for row in range(height) for column in range(width)]
    count = 1
    for length in shape:
        count *= length
    return [str(number) for number in range(count)]
