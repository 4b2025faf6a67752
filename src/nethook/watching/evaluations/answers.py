"""Knowing the answers of a model by their numbers, where a script compares them with labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import torch

from nethook.hooks.modes import unrecorded
from nethook.stats.shards import is_shared
from nethook.torch_private import version_of

LARGEST: Final = 1 << 20
"""Elements of an output beyond which its answers are not followed."""
CONFUSED: Final = 64
"""Classes up to which it is counted which is taken for which."""
COUNTED: Final = 1000
"""Classes up to which answers and labels are counted."""
COLLECTED: Final = 1 << 16
"""Answers of a pass that are kept, to be compared at its end."""
FEWEST: Final = 8
"""Answers of a pass below which it has no score."""


class Pass:
    """Answers of the pass that is under way."""

    def __init__(self) -> None:
        self.outputs: list[tuple[torch.Tensor, int]] = []
        self.given: torch.Tensor | None = None
        self.collected: list[torch.Tensor] = []
        self.kept = 0
        self.classes = 0  # of those that are collected
        self.calls = 0
        self.seen = False  # whether the last answers were compared
        self.training = False
        self.thread = 0

    @property
    def answers(self) -> bool:
        """Whether there are any."""
        return bool(self.outputs or self.collected)

    def turn(self, training: bool) -> None:
        """Another call of a model has ended: answers that nobody compared may be collected."""
        if self.outputs and not self.seen:
            self._collect()
        self.calls += 1
        self.outputs, self.given, self.seen, self.training = [], None, False, training

    def _collect(self) -> None:
        for output, _ in self.outputs[:1]:
            if output.dim() >= 2 and output.shape[1] > 1 and self.kept < COLLECTED:
                answers = _largest(output, 1)
                self.kept += answers.numel()
                self.classes = output.shape[1]
                self.collected.append(answers)


def is_followed(tensor: torch.Tensor) -> bool:
    """Whether answers can be read from an output."""
    return (
        type(tensor) is torch.Tensor
        and tensor.is_floating_point()
        and 0 < tensor.numel() <= LARGEST
        and tensor.layout is torch.strided
        and not (tensor.is_meta or is_shared(tensor))
    )


def written(tensor: torch.Tensor) -> int:
    """How often an output has been written to; what inference mode made does not count that."""
    return 0 if tensor.is_inference() else version_of(tensor)


class _Compared(NamedTuple):
    """Both sides of a comparison, one number a sample."""

    one: torch.Tensor
    other: torch.Tensor
    shapes: tuple[list[int], list[int]]
    each_with_each: bool  # by mistake: (N,) and (N, 1) make N x N


class Found(NamedTuple):
    """A comparison of answers with labels."""

    numbers: torch.Tensor  # comparisons that fit, rows, hits; then counts of classes
    labels: torch.Tensor
    classes: int
    shapes: tuple[list[int], list[int]]  # of answers, of labels
    each_with_each: bool
    collected: bool = False  # over several calls


@unrecorded
def read(
    left: torch.Tensor, right: torch.Tensor, result: torch.Tensor, under_way: Pass
) -> Found | None:
    """A comparison as one of answers with labels; None where neither side has been answered."""
    sides = _sides(left, right, result)
    if sides is None:
        return None
    one = sides.one
    for output, version in reversed(under_way.outputs):
        if written(output) != version or output.device != one.device:
            continue
        for answers, classes in _answers_of(output, left.shape, one.numel()):
            found = _matched(answers, classes, sides)
            if found is not None:
                return found
    return _of_collected(sides, under_way)


def _sides(left: torch.Tensor, right: torch.Tensor, result: torch.Tensor) -> _Compared | None:
    each = left.dim() != right.dim()
    each = each and left.numel() == right.numel() < result.numel() == left.numel() ** 2
    shapes = list(left.shape), list(right.shape)
    if not each and left.dim() == right.dim() == 2 and _are_ranked(left, right):
        # The largest k of each sample: the first of them is the answer.
        rank = 0 if left.shape[1] == right.shape[1] and not _repeats(left, right, 1) else 1
        left, right = left.select(rank, 0), right.select(rank, 0)
        shapes = list(left.shape), list(right.shape)
    one, other = left.reshape(-1), right.reshape(-1)
    if one.numel() != other.numel() or one.device != other.device:
        return None
    if one.is_complex() or other.is_complex():
        return None
    return _Compared(one, other, shapes, each)


def _of_collected(sides: _Compared, under_way: Pass) -> Found | None:
    """Answers of the whole pass, compared at its end."""
    parts = [*under_way.collected]
    if not parts:
        return None
    if under_way.outputs and not under_way.seen:
        parts += [_largest(output, 1) for output, _ in under_way.outputs[:1] if output.dim() >= 2]
    number = sum(part.numel() for part in parts)
    if number != sides.one.numel() or any(part.device != sides.one.device for part in parts):
        return None
    answers = torch.cat([part.reshape(-1) for part in parts])
    found = _matched(answers, under_way.classes, sides)
    return None if found is None else found._replace(collected=True)


def _are_ranked(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether one side is repeated along the ranks of the other."""
    return left.numel() != right.numel() or _repeats(left, right, 0) or _repeats(left, right, 1)


def _repeats(left: torch.Tensor, right: torch.Tensor, dim: int) -> bool:
    return any(side.stride(dim) == 0 and side.shape[dim] > 1 for side in (left, right))


def _largest(output: torch.Tensor, dim: int) -> torch.Tensor:
    return output.argmax(dim)


def _answers_of(
    output: torch.Tensor, shape: Sequence[int], number: int
) -> list[tuple[torch.Tensor, int]]:
    """What a model may have answered, as so many numbers, and of how many classes."""
    found: list[tuple[torch.Tensor, int]] = []
    sizes = output.shape
    if output.dim() >= 2:
        last = output.dim() - 1
        fits = [
            dim for dim in {1, last} if sizes[dim] > 1 and output.numel() // sizes[dim] == number
        ]
        alike = [dim for dim in fits if list(shape) == [*sizes[:dim], *sizes[dim + 1 :]]]
        found = [(_largest(output, dim), sizes[dim]) for dim in (alike or sorted(fits))]
    elif output.dim() == 1 and number == 1 and len(output) > 1:
        found = [(_largest(output, 0), len(output))]
    if output.numel() == number:
        found += [((output > 0).long(), 2), ((output > 0.5).long(), 2)]
    return found


def _matched(answers: torch.Tensor, classes: int, sides: _Compared) -> Found | None:
    """A comparison, where one of its sides has these answers.

    On a device nothing is asked of it: whether they fit is one of the numbers.
    """
    one, other, answers = sides.one, sides.other, answers.reshape(-1)
    fits = [(side == answers).all() for side in (one, other)]
    if answers.is_cpu:
        if not any(fits):
            return None
        first = bool(fits[0])
        labels = other if first else one
    elif one.is_floating_point() or other.is_floating_point() or len(answers) < FEWEST:
        return None
    else:
        first, labels = True, torch.where(fits[0], other, one)
    valid = (fits[0] | fits[1]).float().reshape(1)
    rows = torch.full_like(valid, float(len(answers)))
    hits = (labels == answers).sum().float().reshape(1)
    parts = [valid, rows, hits]
    if 2 <= classes <= COUNTED and len(answers) * classes <= LARGEST:
        every = torch.arange(classes, device=answers.device)
        said = (answers[:, None] == every).float()
        wanted = (labels[:, None] == every).float()
        if classes <= CONFUSED:
            parts.append((said.T @ wanted).reshape(-1))
        else:
            parts += [said.sum(0), wanted.sum(0)]
    shapes = sides.shapes if first else sides.shapes[::-1]
    return Found(torch.cat(parts).double(), labels, classes, shapes, sides.each_with_each)
