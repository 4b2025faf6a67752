"""The batches of a step, or of an evaluation pass, put together as users count them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from nethook.hooks.modes import unrecorded
from nethook.stats.torch_kernel import number_type

Number = torch.Tensor | float


class Batch(NamedTuple):
    """One value of a loss.

    Arguments:
        value: of the loss, a tensor where it is on a device.
        samples: that it is of; None where that is not known.
        divisor: the whole number that it was divided by; NaN where it is on a device.
        summed: whether it is a sum over samples rather than a mean.
    """

    value: Number
    samples: Number | None = None
    divisor: float | None = None
    summed: bool = False


class Point(NamedTuple):
    """Batches put together: the columns of `LOSS` in `runs.format.points` after step and time."""

    value: float
    samples: float
    batches: float
    divided: float
    sum: float
    batch_sum: float


def point_of_step(batches: Sequence[Batch]) -> Point:
    """The loss of a training step.

    Where the script divides the loss of each micro-batch (by their number, or by the samples of all
    of them), the loss of the step is their sum; where it does not, their mean.
    """
    count = len(batches)
    if count == 1:
        only = batches[0]
        if only.samples and not only.summed:  # as nearly always
            value, samples = float(only.value), float(only.samples)
            return Point(value, samples, 1.0, 0.0, value * samples, value)
    values = [float(batch.value) for batch in batches]
    total = values[0] if count == 1 else math.fsum(values)
    samples = math.fsum(_known(batch.samples) for batch in batches)
    divisor = batches[0].divisor
    if count > 1 and divisor is not None and not divisor < count:
        by = divisor if divisor == divisor else float(count)
        if batches[0].summed and _is_mean(divisor, samples):
            return Point(total, samples, count, by, total * samples, total * by)
        if batches[0].summed:
            return Point(total, samples, count, by, total * by + 0.0 * samples, total * by)
        weighted = math.fsum(map(_sum, values, batches))
        return Point(total, samples, count, by, weighted * by, total * by)
    summed = math.fsum(map(_sum, values, batches))
    value = total
    if count > 1:
        plain = batches[0].summed or not samples > 0
        value = total / count if plain else summed / samples
    return Point(value, samples, count, 0.0, summed, total)


def _sum(value: float, batch: Batch) -> float:
    """The sum over the samples of a batch; NaN where their number is not known."""
    samples = _known(batch.samples)
    if samples == 0.0:
        return 0.0
    if batch.summed and not _is_mean(batch.divisor, samples):
        return value + 0.0 * samples
    return value * samples


def _is_mean(divisor: float | None, samples: float) -> bool:
    """Whether a sum that was divided is a mean: by its samples or elements, and not by a few."""
    return divisor is not None and not divisor < 0.75 * samples


def _known(samples: Number | None) -> float:
    return math.nan if samples is None else float(samples)


class PassTally:
    """The loss of an evaluation pass, batch by batch."""

    def __init__(self) -> None:
        self._samples = self._sum = self._batch_sum = 0.0
        self._batches = 0
        self._waiting: list[Batch] = []  # on a device

    def add(self, batch: Batch) -> None:
        """One batch more."""
        if is_on_device(batch):
            self._waiting.append(batch)
            return
        value = float(batch.value)
        self._samples += _known(batch.samples)
        self._sum += _sum(value, batch)
        self._batch_sum += value
        self._batches += 1

    def take_waiting(self) -> list[Batch]:
        """Those whose values are still on a device; they are added again once they are known."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def point(self) -> Point:
        """The mean over samples, or over batches where samples are not known."""
        count = max(self._batches, 1)
        known = self._samples > 0
        value = self._sum / self._samples if known else self._batch_sum / count
        return Point(value, self._samples, self._batches, 0.0, self._sum, self._batch_sum)


def is_on_device(batch: Batch) -> bool:
    """Whether something of a batch is not known yet."""
    return isinstance(batch.value, torch.Tensor) or isinstance(batch.samples, torch.Tensor)


@unrecorded
def packed(batches: Iterable[Batch]) -> torch.Tensor:
    """What is on a device of some batches, as one tensor."""
    parts = [part for batch in batches for part in batch[:2] if isinstance(part, torch.Tensor)]
    if len(parts) == 1:
        return parts[0].detach().reshape(1)
    kind = number_type(parts[0].device)
    return torch.stack([part.detach().reshape(()).to(kind) for part in parts])


def filled(batches: Iterable[Batch], numbers: Sequence[float]) -> list[Batch]:
    """Batches with the numbers of `packed` in their places."""
    rest = iter(numbers)

    known = []
    for value, samples, divisor, summed in batches:
        first = next(rest) if isinstance(value, torch.Tensor) else value
        second = next(rest) if isinstance(samples, torch.Tensor) else samples
        known.append(Batch(first, second, divisor, summed))
    return known
