"""What can be seen of batches before one of them is examined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from nethook.addresses.nested import tensors

if TYPE_CHECKING:
    from nethook.addresses.inputs import Inputs
    from nethook.examining.batch_facts import BatchFacts, LoaderFacts

SAME: Final = 1 << 20
"""Elements of a batch up to which it is compared with the first one."""
MOST: Final = 32
"""Sizes that are remembered."""


class SeenBatches:
    """Sizes, whether they are all the same, and whether a data loader hands them out."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.repeats: bool | None = None
        self.loader: LoaderFacts | None = None
        self._fresh = False  # whether a loader has handed one out since the last call
        self._first: torch.Tensor | None = None

    def called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A model is called with this, in training."""
        given = [tensor for _, tensor in tensors((args, kwargs)) if tensor.dim()]
        if not given:
            return
        first = given[0]
        self.sizes = [*self.sizes[1 - MOST :], first.size(0)]
        if not self._fresh:
            self.loader = None
        self._fresh = False
        if self._first is None:
            self._first = first if first.numel() <= SAME else first[:0]
        elif self.repeats is not False:
            self.repeats = _is_same(first, self._first)

    def loaded(self, sampler: Any, collated: bool, dataset: Any = None) -> None:
        """A data loader has handed a batch out."""
        from nethook.examining.batch_facts import loader_facts

        self.loader = loader_facts(sampler, collated, dataset)
        self._fresh = True

    def facts(self, inputs: Inputs, calls: int) -> BatchFacts:
        """Of the batch that a model was called with last."""
        from nethook.examining.batch_facts import facts_of

        return facts_of(inputs, tuple(self.sizes), self.repeats, self.loader, max(1, calls))


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one is other:
        return True
    if one.shape != other.shape or one.dtype is not other.dtype or one.numel() > SAME:
        return False
    if not (one.is_cpu and other.is_cpu) or one.layout is not torch.strided:
        return False
    return torch.equal(one, other)
