"""Running statistics that are written in evaluation mode.

In evaluation mode batch norm reads its running mean and variance. A layer that writes them there
normalises each batch by itself (`F.batch_norm(..., training=True)`). Torch does not count writes of
batch norm, so that the numbers are compared, in a few passes.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import nn

from nethook.hooks.modes import unrecorded

LOOKED_AT: Final = 4
"""Passes in evaluation mode that are looked at."""


class WrittenBuffers:
    """Compares buffers at the beginning and at the end of a pass without gradient."""

    def __init__(self) -> None:
        self._passes = 0
        self._before: list[tuple[str, torch.Tensor, torch.Tensor]] = []
        self._seen: set[int] = set()

    @unrecorded
    def begins(self, module: nn.Module) -> None:
        """A model that is in evaluation mode is called."""
        if self._passes >= LOOKED_AT or id(module) in self._seen:
            return
        self._seen.add(id(module))
        for name, part in module.named_modules():
            pairs = list(part.named_buffers(recurse=False))
            # A mean and a variance: two, of one number for each channel.
            flat = [(key, value) for key, value in pairs if _is_statistic(value)]
            if len(flat) >= 2 and not part.training:
                self._before += [
                    (f"{name}.{key}".lstrip("."), value, value.clone()) for key, value in flat
                ]

    @unrecorded
    def ended(self) -> list[str]:
        """The names of what was written in the pass that has ended."""
        if not self._seen:
            return []
        moved = [(value != before).any() for _, value, before in self._before]
        one_device = len({each.device for each in moved}) == 1
        flags = torch.stack(moved).tolist() if one_device else [False] * len(moved)
        pairs = zip(self._before, flags, strict=True)
        written = [name for (name, _, _), has_moved in pairs if has_moved]
        self._before.clear()
        self._seen.clear()
        self._passes += 1
        return written


def _is_statistic(value: torch.Tensor) -> bool:
    return (
        type(value) is torch.Tensor
        and value.dim() == 1
        and value.is_floating_point()
        and not value.is_inference()
    )
