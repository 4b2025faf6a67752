"""Where the channels and the places of a layer's value are: CNN, ViT or Swin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch

from nethook.errors import OptionError

FIRST: Final = "channels first"  # (rows, channels, height, width)
LAST: Final = "channels last"  # (rows, height, width, channels)
TOKENS: Final = "tokens"  # (rows, tokens, channels)
_MOST_OTHERS = 16  # class and register tokens


@dataclass(frozen=True)
class Layout:
    """How a value is laid out; `skipped` tokens come before the grid."""

    name: str
    height: int
    width: int
    skipped: int = 0

    def channels_first(self, value: torch.Tensor) -> torch.Tensor:
        """The value as (rows, channels, height, width), without other tokens."""
        if self.name == FIRST:
            return value
        if self.name == LAST:
            return value.permute(0, 3, 1, 2)
        inside = value[:, self.skipped : self.skipped + self.height * self.width]
        grid: torch.Tensor = inside.transpose(1, 2).unflatten(2, (self.height, self.width))
        return grid


def find_layout(
    shape: tuple[int, ...], picture: tuple[int, int], site: str,
    grid: tuple[int, int] | None = None,
) -> Layout:  # fmt: skip
    """The layout of a value of a shape, for pictures of a height and width."""
    if len(shape) == 4:
        first, last = _off(shape[2:], picture), _off(shape[1:3], picture)
        if grid is not None:
            first, last = (float(each != grid) for each in (shape[2:], shape[1:3]))
        if first <= last:
            return Layout(FIRST, shape[2], shape[3])
        return Layout(LAST, shape[1], shape[2])
    if len(shape) == 3:
        found = grid or _grid(shape[1], picture)
        if found is not None and 0 <= shape[1] - found[0] * found[1] <= _MOST_OTHERS:
            return Layout(TOKENS, *found, shape[1] - found[0] * found[1])
        raise OptionError(
            f"`grid` must be the height and width of the patches at {site!r}: its {shape[1]} "
            f"tokens are no grid of a picture of {picture[0]} × {picture[1]} with up to "
            f"{_MOST_OTHERS} tokens before it; got {grid}."
        )
    raise OptionError(
        f"`at` must name a layer with places: (rows, channels, height, width), (rows, height, "
        f"width, channels) or (rows, tokens, channels); got {site!r} of the shape {shape}."
    )


def _off(places: tuple[int, ...], picture: tuple[int, int]) -> float:
    """How far places are from being a picture that was made smaller alike in both directions."""
    if places[0] > picture[0] or places[1] > picture[1]:
        return math.inf
    return abs(math.log(places[0] / picture[0]) - math.log(places[1] / picture[1]))


def _grid(tokens: int, picture: tuple[int, int]) -> tuple[int, int] | None:
    """The largest grid of the picture's proportions that so many tokens hold.

    A grid whose patches divide the picture evenly is preferred to one whose patches do not.
    """
    found: list[tuple[float, int, tuple[int, int]]] = []
    for height in range(1, tokens + 1):
        for width in {round(height * picture[1] / picture[0]), height * picture[1] // picture[0]}:
            others = tokens - height * width
            if width < 1 or not 0 <= others <= _MOST_OTHERS:
                continue
            uneven = bool(picture[0] % height or picture[1] % width)
            found.append((uneven, others, (height, width)))
    return min(found)[2] if found else None
