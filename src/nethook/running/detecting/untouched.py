"""Models that were called and never trained.

A library may make a model to look at its shapes, call it, and train another one. At its first call
nobody knows that: it is followed, and its run is taken away where nothing came of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


class Untouched:
    """Whether the parameters of some models have had a gradient, or were written to, since now."""

    def __init__(self, models: Mapping[str, nn.Module]) -> None:
        from nethook.torch_private import version_of

        self._start = [
            (weakref.ref(parameter), version_of(parameter))
            for model in models.values()
            for parameter in model.parameters()
            if not parameter.is_inference()
        ]

    def still(self) -> bool:
        """Whether all that are left are as they were, and have no gradient."""
        from nethook.torch_private import version_of

        for reference, version in self._start:
            parameter = reference()
            if parameter is not None and (
                parameter.grad is not None or version_of(parameter) != version
            ):
                return False
        return True
