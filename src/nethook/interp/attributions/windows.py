"""Windows: the parts of a value that are covered together: patches of pixels, tokens, features."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, TypeAlias

import torch

from nethook.errors import OptionError
from nethook.interp.results.places import PIXELS, dim_of_channels

Size: TypeAlias = int | tuple[int, ...] | None
Window: TypeAlias = tuple[slice, ...]


class Windows:
    """Windows over the places of a row; of channels, and of the width of tokens, all are covered.

    Without a `size`, a window is one place; of pictures a patch, so that there are at most 16 by
    16 of them.
    """

    def __init__(
        self, shape: Sequence[int], kind: str, size: Size = None, stride: Size = None
    ) -> None:
        self._shape = tuple(shape)  # of one row
        channels = dim_of_channels(kind, len(shape) + 1)
        self.dims = [dim for dim in range(len(shape)) if dim + 1 != channels]
        lengths = [shape[dim] for dim in self.dims]
        default = [-(-length // 16) if kind == PIXELS else 1 for length in lengths]
        self.size = _per_dim("window", size, lengths, default)
        self.stride = _per_dim("stride", stride, lengths, self.size)
        self.starts = [
            range(0, max(0, length - size) + step, step)
            for length, size, step in zip(lengths, self.size, self.stride, strict=True)
        ]

    def all(self) -> list[Window]:
        """Every window as an index of one row's value."""
        return [self._window(places) for places in product(*self.starts)]

    def _window(self, places: Sequence[int]) -> Window:
        index = [slice(None)] * len(self._shape)
        for dim, start, size in zip(self.dims, places, self.size, strict=True):
            index[dim] = slice(start, min(start + size, self._shape[dim]))
        return tuple(index)

    def spread(self, effects: torch.Tensor, *, divided: bool = False) -> torch.Tensor:
        """Numbers (windows, rows) as values (rows, …): each place the mean of its windows.

        Dimensions that are covered as a whole have the length one. `divided` shares a window's
        number among its places, so that they add up to it.
        """
        shape = [length if dim in self.dims else 1 for dim, length in enumerate(self._shape)]
        total = effects.new_zeros((effects.shape[1], *shape))
        covered = effects.new_zeros((1, *shape))
        aside = [1] * len(shape)
        for window, numbers in zip(self.all(), effects, strict=True):
            index = (slice(None), *window)  # what is covered as a whole is all of one
            places = total[index][:1].numel() if divided else 1
            total[index] += numbers.view(-1, *aside) / places
            covered[index] += 1
        return torch.where(covered > 0, total / covered, torch.zeros_like(total))

    def mask(self, chosen: Sequence[int]) -> tuple[Any, ...]:
        """An index of one row's value that is everything in some of the windows."""
        windows = self.all()
        shape = [self._shape[dim] for dim in self.dims]
        inside = torch.zeros(shape, dtype=torch.bool)
        for number in chosen:
            inside[tuple(windows[number][dim] for dim in self.dims)] = True
        # The places are next to each other in every kind of value: one mask stands for them all.
        return (*[slice(None)] * self.dims[0], inside)


def _per_dim(name: str, given: Size, lengths: list[int], default: list[int]) -> list[int]:
    if given is None:
        return default
    each = [given] * len(lengths) if isinstance(given, int) else list(given)
    fits = len(each) == len(lengths) and all(
        type(size) is int and 1 <= size <= length
        for size, length in zip(each, lengths, strict=False)
    )
    if not fits:
        raise OptionError(
            f"`{name}` must be a whole number per dimension of places, from 1 to "
            f"{tuple(lengths)}; got {given!r}."
        )
    return each
