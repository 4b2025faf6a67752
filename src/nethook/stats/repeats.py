"""Reads each element of memory once, however often a tensor shows it.

    read = once(tensor)
    read.values      # each element that is stored
    read.counts      # how often each of them is in the tensor, …
    read.times       # … times this

`x[:1].expand(10**12, 3)` has three elements, and `x.unfold(0, 1000, 1)` as many as `x`. What they
cost must depend on the memory, not on the sizes: a dimension of stride 0 is a factor, and how often
overlapping dimensions show an element is counted. repeats.h does the same for the native kernel.

Everything follows from sizes and strides: nothing here waits for a device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from nethook.kinds.modules import is_active

FEW: Final = 1 << 16
"""So many elements are read without a second thought; see `histogram_step`."""


class Lead(NamedTuple):
    """Where a dimension of a tensor leads: a dimension of the values, and how far along it."""

    to: int
    step: int


@dataclass(frozen=True)
class Once:
    """The elements of a tensor as memory has them.

    Attributes:
        shape: that of the tensor.
        values: each stored element once; expanded dimensions have size 1, and overlapping ones are
            one dimension, the last.
        leads: where each dimension of the tensor leads.
        times: how often the tensor repeats all of its values.
        counts: how often each element of the last dimension is in the tensor, besides `times`, and
            0 where there is a gap; None: once each.
    """

    shape: Sequence[int]
    values: Tensor
    leads: Sequence[Lead]
    times: int = 1
    counts: Tensor | None = None

    def index(self, places: Tensor) -> tuple[Tensor, ...]:
        """Where in `values` the elements are that have these places in the order of the tensor."""
        index = [torch.zeros_like(places) for _ in self.values.shape]
        for size, (to, step) in zip(reversed(self.shape), reversed(self.leads), strict=True):
            if step:
                index[to] = index[to] + places % size * step
            places = places // size
        return tuple(index)

    def active(self, unit: int) -> Tensor:
        """For each unit (along the dimension `unit` of the tensor), whether it is not dead."""
        held, last = is_active(self.values), self.values.dim() - 1
        if self.counts is not None:
            held = held & (self.counts > 0)
        to, step = self.leads[unit]
        if not step:  # an expanded dimension: all units are one
            return held.any().expand(self.shape[unit])
        others = [dim for dim in range(last + 1) if dim != to]
        held = held.any(dim=others) if others else held
        if self.counts is None or to != last:
            return held
        # A unit has what every other dimension reaches from where the unit begins.
        reached = held.long().flip(0)
        for dim, lead in enumerate(self.leads):
            if lead.to == last and lead.step and dim != unit:
                reached = _summed(reached, self.shape[dim], lead.step)
        return reached.flip(0)[::step][: self.shape[unit]] > 0


def once(tensor: Tensor) -> Once:
    """How to read a strided tensor without reading an element of memory many times over."""
    shape = tensor.shape
    leads = [Lead(dim, 1) for dim in range(len(shape))]
    if tensor.is_contiguous() or tensor.numel() == 0:
        return Once(shape, tensor, leads)
    times = 1
    for dim, (size, stride) in enumerate(zip(shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            times *= size
            leads[dim] = Lead(dim, 0)
            tensor = tensor.narrow(dim, 0, 1)
    overlap = _find_overlap(tensor)
    if overlap is None:
        return Once(shape, tensor, leads, times)
    outer, inner, step, span = overlap
    sizes, strides = tensor.shape, tensor.stride()
    values = tensor.as_strided(
        (*(sizes[dim] for dim in outer), span), (*(strides[dim] for dim in outer), step)
    )
    counts = torch.zeros(span, dtype=torch.int64, device=tensor.device)
    counts[0] = 1
    leads = [Lead(0, 0)] * len(shape)
    for position, dim in enumerate(outer):
        leads[dim] = Lead(position, 1)
    for dim in inner:
        leads[dim] = Lead(len(outer), strides[dim] // step)
        counts = _summed(counts, sizes[dim], strides[dim] // step)
    return Once(shape, values, leads, times, counts)


def unexpanded(tensor: Tensor, *, keep: int | None = None) -> Tensor:
    """A tensor with one element of each expanded dimension: its means are the same.

    Arguments:
        tensor: any tensor; only strided ones have such dimensions.
        keep: a dimension that stays as it is.
    """
    if tensor.is_nested or tensor.layout is not torch.strided or tensor.is_contiguous():
        return tensor
    keep = None if keep is None else keep % tensor.dim()
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1 and dim != keep:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def stored_elements(tensor: Tensor) -> int:
    """How many elements of memory a tensor shows, at most."""
    elements = tensor.numel()
    if not elements or tensor.is_nested or tensor.layout is not torch.strided:
        return elements
    return min(elements, _span(list(zip(tensor.shape, tensor.stride(), strict=True))))


def histogram_step(tensor: Tensor, limit: int) -> int:
    """The step with which a histogram reads a tensor, so that it reads about `limit` elements.

    It is odd, so that it does not keep pace with a power of two among the sizes. Of a tensor that
    shows its memory many times no more is read than memory has elements, unless these are few.
    """
    elements = tensor.numel()
    if elements <= limit or limit >= 1 << 62 or (limit > FEW and stored_elements(tensor) <= limit):
        return 1
    return ((elements - 1) // limit + 1) | 1


def _span(dims: Sequence[tuple[int, int]]) -> int:
    """From the first element to the last, with both, in memory."""
    return sum((size - 1) * stride for size, stride in dims) + 1


def _find_overlap(tensor: Tensor) -> tuple[list[int], list[int], int, int] | None:
    """Dimensions that lie apart, those inside them that overlap, and the step and span of these.

    An overlap that shows its memory no more than twice is none: reading it as it is is quicker.
    """
    sizes, strides = tensor.shape, tensor.stride()
    order = [dim for dim in range(tensor.dim()) if sizes[dim] > 1]
    order.sort(key=lambda dim: -strides[dim])
    outer: list[int] = []
    while order and strides[order[0]] >= _span([(sizes[dim], strides[dim]) for dim in order[1:]]):
        outer.append(order.pop(0))
    if not order:
        return None
    step = math.gcd(*(strides[dim] for dim in order))
    span = (_span([(sizes[dim], strides[dim]) for dim in order]) - 1) // step + 1
    if math.prod(sizes[dim] for dim in order) // 2 < span:
        return None
    return outer, order, step, span


def _summed(numbers: Tensor, count: int, stride: int) -> Tensor:
    """Each number plus the `count` − 1 numbers before it, `stride` apart."""
    rows = -(-len(numbers) // stride)
    sums = F.pad(numbers, (0, rows * stride - len(numbers))).view(rows, stride).cumsum(0)
    if count < rows:
        sums = torch.cat([sums[:count], sums[count:] - sums[:-count]])
    return sums.view(-1)[: len(numbers)]
