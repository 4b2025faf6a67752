"""Samples of a kept batch: along which dimension they lie, and how one takes the place of others.

    axis = BatchAxis.of(inputs, dim=0, size=32)
    axis.only(inputs, keep=3, by=7)      # every sample but the third is now a copy of the seventh
    axis.swapped(inputs, change=3, by=7) # the third alone is

Others are replaced by a real sample and never permuted: a softmax over the batch does not notice a
permutation. Whole numbers in one dimension (lengths of sequences) stay where they are: sequences
that were sorted by length must stay sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.addresses.paths import Path


def tensors_of(inputs: Inputs) -> list[tuple[Path, torch.Tensor]]:
    """Every tensor among the arguments, in the order in which `with_tensors` meets them."""
    return tensors((inputs.args, dict(inputs.kwargs)))


def with_tensors(inputs: Inputs, change: Callable[[int, torch.Tensor], torch.Tensor]) -> Inputs:
    """The arguments with each tensor replaced by `change(number, tensor)`."""
    numbers = iter(range(1 << 30))
    args, kwargs = map_tensors(
        lambda tensor: change(next(numbers), tensor), (inputs.args, dict(inputs.kwargs))
    )
    return Inputs(args, kwargs)


def is_whole(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds whole numbers: tokens, classes, lengths."""
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)


@dataclass(frozen=True, slots=True)
class BatchAxis:
    """The dimension of samples, in each input that has one.

    Attributes:
        size: samples in the batch.
        dims: number of the input tensor -> its dimension of samples.
    """

    size: int
    dims: Mapping[int, int]

    @classmethod
    def of(cls, inputs: Inputs, dim: int, size: int) -> BatchAxis:
        """The inputs that have so many samples: at `dim`, or (a state of an RNN) at another one."""
        dims: dict[int, int] = {}
        for number, (_, tensor) in enumerate(tensors_of(inputs)):
            if tensor.layout is not torch.strided or (tensor.dim() == 1 and is_whole(tensor)):
                continue
            if tensor.dim() > dim and tensor.size(dim) == size:
                dims[number] = dim
            elif tensor.dim() > 2 and size in tensor.shape[:2]:
                dims[number] = tuple(tensor.shape).index(size)
            elif tensor.dim() == 1 and tensor.size(0) == size:
                dims[number] = 0
        return cls(size, dims)

    def only(self, inputs: Inputs, *, keep: int, by: int) -> Inputs:
        """Every sample but one replaced by a real one."""
        index = torch.full((self.size,), by)
        index[keep] = keep
        return self._taken(inputs, index)

    def swapped(self, inputs: Inputs, *, change: int, by: int) -> Inputs:
        """One sample replaced by another."""
        index = torch.arange(self.size)
        index[change] = by
        return self._taken(inputs, index)

    def differ(self, inputs: Inputs, one: int, other: int) -> bool:
        """Whether two samples are different."""
        given = tensors_of(inputs)
        return any(
            not torch.equal(given[number][1].select(dim, one), given[number][1].select(dim, other))
            for number, dim in self.dims.items()
        )

    def another(self, inputs: Inputs, sample: int) -> int | None:
        """A sample that differs from one; None where all are the same."""
        order = [*range(sample + 1, self.size), *range(sample)]
        return next((other for other in order if self.differ(inputs, sample, other)), None)

    def _taken(self, inputs: Inputs, index: torch.Tensor) -> Inputs:
        def take(number: int, tensor: torch.Tensor) -> torch.Tensor:
            if number not in self.dims:
                return tensor
            return tensor.detach().index_select(self.dims[number], index.to(tensor.device))

        return with_tensors(inputs, take)


def first_middle_last(size: int) -> tuple[int, ...]:
    """A recurrent pass over the batch hides at its first sample, one that is cut at its last."""
    return tuple(dict.fromkeys((0, size // 2, size - 1)))
