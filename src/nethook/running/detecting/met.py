"""What a session has met, by id, with a weak reference to each: ids are used again."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer


class Met:
    """Modules that were judged, parameters that are followed, and optimizers that have stepped."""

    def __init__(self) -> None:
        # A module is judged anew where gradients are on that were off: without an optimizer, that
        # alone tells training from evaluation.
        self._judged: dict[tuple[int, bool], weakref.ref[nn.Module]] = {}
        self._followed: dict[int, weakref.ref[Any]] = {}
        self._optimizers: dict[int, tuple[weakref.ref[Optimizer], int]] = {}

    def judged(self, module: nn.Module) -> bool:
        """Whether a module was judged, with gradients on or off as they are now."""
        reference = self._judged.get(_key(module))
        return reference is not None and reference() is module

    def judge(self, module: nn.Module) -> None:
        """A module was judged."""
        self._judged[_key(module)] = weakref.ref(module)

    def judge_anew(self) -> None:
        """No module counts as judged any more."""
        self._judged.clear()

    def follow(self, parameters: Iterable[Tensor]) -> None:
        """Parameters are followed from now on."""
        for parameter in parameters:
            self._followed[id(parameter)] = weakref.ref(parameter)

    def followed(self) -> set[int]:
        """The ids of all parameters that are followed and there."""
        return {key for key, reference in self._followed.items() if reference() is not None}

    def steps(self, optimizer: Optimizer) -> int:
        """What `stepped` was last told of an optimizer; 0 where that was nothing."""
        reference, steps = self._optimizers.get(id(optimizer), (None, 0))
        return steps if reference is not None and reference() is optimizer else 0

    def stepped(self, optimizer: Optimizer, steps: int) -> None:
        """In so many steps an optimizer held something that is not followed; -1: no more looks."""
        self._optimizers[id(optimizer)] = (weakref.ref(optimizer), steps)


def _key(module: nn.Module) -> tuple[int, bool]:
    import torch

    return id(module), torch.is_grad_enabled()
