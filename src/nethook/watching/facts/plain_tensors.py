"""Tensors that lie in a module as plain attributes and look like weights.

`self.keys = torch.randn(24, 64)` is no parameter: no optimizer gets it, no `state_dict` has it, and
it stays at its random start. What is looked for are matrices of random numbers that nothing writes;
tables with an order of their own (positions, frequencies, grids) are no weights.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Final

import torch
from torch import nn

from nethook.hooks.modes import unrecorded
from nethook.stats.native import readable
from nethook.torch_private import version_of

FEWEST: Final = 32
"""Elements of a tensor from which on its numbers tell whether they are random."""
MOST: Final = 1 << 14
"""Elements that are looked at."""
SHOWN: Final = 32
_DISTINCT: Final = 0.9


class PlainTensors:
    """Looks for such tensors.

    Arguments:
        models: the watched models by name.
    """

    def __init__(self, models: Mapping[str, nn.Module]) -> None:
        self._models = models
        self._met: dict[str, tuple[weakref.ref[torch.Tensor], int, int]] | None = None

    def found(self, step: int) -> list[dict[str, Any]]:
        """Those that were there at the first look and are still what they were.

        Arguments:
            step: at which it is looked.
        """
        there = {address: tensor for address, tensor in self._there() if _is_like_a_weight(tensor)}
        if self._met is None:
            self._met = {
                address: (weakref.ref(tensor), version_of(tensor), step)
                for address, tensor in list(there.items())[:SHOWN]
            }
        for address, (reference, version, _) in list(self._met.items()):
            tensor = there.get(address)
            if tensor is None or reference() is not tensor or version_of(tensor) != version:
                del self._met[address]
        return [
            {"address": address, "shape": list(there[address].shape), "since": since}
            for address, (_, _, since) in self._met.items()
        ]

    def _there(self) -> Iterator[tuple[str, torch.Tensor]]:
        for model, root in self._models.items():
            prefix = f"{model}." if model else ""
            for name, module in root.named_modules():
                for key, value in vars(module).items():
                    if isinstance(value, torch.Tensor):
                        inside = f"{name}." if name else ""
                        yield f"{prefix}{inside}{key}", value


def _is_like_a_weight(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a matrix of random numbers, and is not trained."""
    if tensor.requires_grad or tensor.is_inference() or not tensor.is_floating_point():
        return False
    if tensor.dim() < 2 or tensor.numel() < FEWEST or not readable.is_readable(tensor):
        return False
    return is_random(tensor)


@unrecorded
def is_random(tensor: torch.Tensor) -> bool:
    """Whether numbers have no order: neighbours are no more alike than others are."""
    matrix = tensor.detach().reshape(tensor.shape[0], -1)
    rows = max(2, MOST // max(1, matrix.shape[1]))
    matrix = matrix[:rows, : MOST // 2].double()
    if matrix.unique().numel() < _DISTINCT * matrix.numel() or not bool((matrix != 0).all()):
        return False
    centred = matrix - matrix.mean()
    size = float(centred.square().mean())
    if not size > 0:
        return False
    for along in range(2):
        if matrix.shape[along] < 2:
            continue
        first = centred.narrow(along, 0, matrix.shape[along] - 1)
        second = centred.narrow(along, 1, matrix.shape[along] - 1)
        alike = float((first * second).mean()) / size
        if abs(alike) > 4 / first.numel() ** 0.5:
            return False
    return True
