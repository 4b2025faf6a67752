"""Samples that stand in a batch several times, and whether their targets lie as they do.

`repeat` puts all samples below themselves (a, b, c, a, b, c), and `repeat_interleave` each one
(a, a, b, b, c, c). Where inputs were laid out by the one and targets by the other, targets of one
and the same input agree no more than by chance, and those of the other layout do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch

FEWEST: Final = 4
"""Different samples in a batch."""
_MOST: Final = 4096  # rows that are compared
_CLEAR: Final = 6.0  # errors by which the other layout must beat chance
_GAIN: Final = 0.1  # and by how much in all
TILES: Final = "tiles"
RUNS: Final = "runs"


def laid_otherwise(inputs: Sequence[torch.Tensor], target: torch.Tensor) -> dict[str, Any] | None:
    """What shows that targets lie otherwise than copies of the inputs; None where nothing does."""
    count = inputs[0].size(0) if inputs and inputs[0].dim() else 0
    own_rows = not target.is_floating_point() and target.dim() and not target.is_complex()
    if not own_rows or not 2 * FEWEST <= count <= _MOST or target.size(0) % count:
        return None
    rows = [one.detach().reshape(count, -1) for one in inputs if one.dim() and len(one) == count]
    if len(rows) < len(inputs):
        return None  # what the others say of a sample is not known
    layout = _layout(rows, count)
    if layout is None:
        return None
    how, copies = layout
    order = torch.arange(count)
    tiles, runs = order % (count // copies), order // copies
    answers = target.detach().cpu().reshape(count, -1)
    mine, others = (tiles, runs) if how == TILES else (runs, tiles)
    chance = _agreement(answers, torch.zeros_like(order))
    pairs = count * (copies - 1) / 2 * answers.size(1)
    error = math.sqrt(max(chance * (1 - chance), 1e-4) / pairs)
    own, other = _agreement(answers, mine), _agreement(answers, others)
    if own > chance + 3 * error or other < chance + max(_CLEAR * error, _GAIN):
        return None
    return {"laid": how, "copies": copies, "own": own, "other": other, "chance": chance}


def _layout(rows: Sequence[torch.Tensor], count: int) -> tuple[str, int] | None:
    """How the copies of samples lie, and how many there are of each."""
    for size in range(FEWEST, count // 2 + 1):
        if count % size:
            continue
        copies = count // size
        for how in (TILES, RUNS):
            second = size if how == TILES else 1  # the first sample's second copy
            if not all(torch.equal(one[0], one[second]) for one in rows):
                continue
            shape = (copies, size, -1) if how == TILES else (size, copies, -1)
            axis = 0 if how == TILES else 1
            cut = [one.reshape(shape).movedim(axis, 0) for one in rows]
            same = all(bool((one == one[:1]).all()) for one in cut)
            if same and any(len(one[0].unique(dim=0)) == size for one in cut):
                return how, copies
    return None


def _agreement(answers: torch.Tensor, groups: torch.Tensor) -> float:
    """The share of pairs within a group that have the same answer, over all places."""
    values, places = answers.unique(return_inverse=True)
    kinds, group = len(values), int(groups.max()) + 1
    same = pairs = 0.0
    for column in places.reshape(answers.shape).T:
        counts = torch.bincount(groups * kinds + column, minlength=group * kinds).double()
        sizes = counts.reshape(group, kinds).sum(1)
        same += float((counts * (counts - 1)).sum())
        pairs += float((sizes * (sizes - 1)).sum())
    return same / max(pairs, 1.0)
