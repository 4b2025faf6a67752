"""Whether a step has changed any weight, where torch does not say that it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch

from nethook.stats.native import readable
from nethook.stats.sampling import INTEGERS
from nethook.stats.tables import SAMPLE
from nethook.torch_private import version_of

FEW: Final = 3
"""Parameters whose versions tell whether a step has changed anything: asked in every step. An
optimizer that is interrupted has changed all of them, or the first ones."""

WITNESSES: Final = 8
"""Parameters of which some coordinates tell whether a step has changed anything."""


class Witnesses:
    """What is remembered of the parameters of an optimizer, to be compared after its step."""

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self._versioned = [parameter for parameter in parameters if not parameter.is_inference()]
        self.few = self._versioned[:: max(1, len(self._versioned) // FEW)][:FEW]
        self._some: list[Any] | None = None  # views of some weights, once they are asked for

    def versions(self) -> list[int]:
        """How often each parameter was written to."""
        return [*map(version_of, self._versioned)]

    def few_versions(self) -> list[int]:
        """The same of the first and a few others."""
        return [*map(version_of, self.few)]

    def some_weights(self) -> list[Any]:
        """A few coordinates of a few parameters."""
        if self._some is None:
            every = max(1, len(self._versioned) // WITNESSES)
            views = [_strided_view(parameter) for parameter in self._versioned[::every]]
            self._some = [view for view in views if view is not None]
        return [
            view.copy() if isinstance(view, np.ndarray) else view.clone() for view in self._some
        ]

    def have_changed(self, weights: list[Any]) -> bool:
        """Whether any of these coordinates is another number now."""
        now = self.some_weights() if weights else []
        if len(now) != len(weights):
            return False
        return any(bool((a != b).any()) for a, b in zip(now, weights, strict=True))


def _strided_view(parameter: torch.Tensor) -> Any:
    """A view of some coordinates of a parameter, as integers; None where there is none.

    On the CPU it is numpy's, which copies in a tenth of the time.
    """
    if readable.kind(parameter) is not None or parameter.is_conj() or parameter.is_neg():
        return None  # of the last two the memory holds other numbers than they show
    size = parameter.element_size()
    if not parameter.numel() or not parameter.is_contiguous() or size not in INTEGERS:
        return None
    flat = parameter.detach().view(-1).view(INTEGERS[size])
    some = flat[:: max(1, flat.numel() // SAMPLE)][:SAMPLE]
    return some.numpy() if some.device.type == "cpu" else some
