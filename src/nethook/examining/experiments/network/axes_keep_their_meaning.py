"""Axes keep their meaning: a `view` splits and joins neighbouring axes, and mixes none.

Experiment: the shapes of every `view` and `reshape` of the step are read, before and after.

Meaning: `x.view(batch, channels, height, width)` of what lies as (batch, height, width, channels),
or `view(batch, steps)` of (steps, batch): numbers keep their order in memory, and every axis has
parts of the others. `permute` or `transpose` was meant.

Cost: one pass of the step, which `softmax_has_a_choice` shares.

Does not apply: where nothing is viewed. Axes of equal size cannot be told apart. A question: where
axes could have been split and joined to the same sizes, as where frames of a sound are stacked; and
sizes that differ by one, as where positions are shifted against each other on purpose.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from nethook.examining.experiment import Result, fine, found, not_applicable, question
from nethook.examining.probes.calls import VIEWS, Call, Shape, calls_of
from nethook.examining.rehearsal import Rehearsal


class AxesKeepTheirMeaning:
    """See the module."""

    name = "axes keep their meaning"
    turn = 3

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None: whether something is viewed is seen in a pass."""
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Every view."""
        views = [call for call in calls_of(rehearsal) if call.name in VIEWS]
        if not views:
            return not_applicable(self, "nothing is viewed as another shape")
        asked: Call | None = None
        for call in views:
            kind = mixes(call.given, call.made)
            if kind == "mixed":
                return found(self, **_facts(call))
            if kind and asked is None:
                asked = call
        if asked is not None:
            reason = "it is where axes are split and joined on purpose"
            return question(self, reason, **_facts(asked))
        return fine(self, views=len(views))


def _facts(call: Call) -> dict[str, object]:
    lines = [call.line] if call.line else []
    return {"given": list(call.given), "made": list(call.made), "lines": lines}


def mixes(given: Shape, made: Shape) -> str:
    """`mixed`, `perhaps`, or "" where axes are only split, joined or left alone."""
    worst = ""
    for before, after in groups(given, made):
        kind = _kind(before, after)
        if kind == "mixed":
            return kind
        worst = worst or kind
    return worst


def groups(given: Shape, made: Shape) -> Iterator[tuple[Shape, Shape]]:
    """The smallest runs of axes that have the same elements before and after; of several each."""
    before = [size for size in given if size != 1]
    after = [size for size in made if size != 1]
    shared = sorted(set(_ends(before)) & set(_ends(after)))
    for low, high in itertools.pairwise([1, *shared]):
        pair = tuple(_within(axes, low, high) for axes in (before, after))
        if min(map(len, pair)) > 1:
            yield pair[0], pair[1]


def _ends(axes: Sequence[int]) -> list[int]:
    """How many elements there are up to the end of each axis."""
    return list(itertools.accumulate(axes, lambda a, b: a * b))


def _within(axes: Sequence[int], low: int, high: int) -> Shape:
    ends = _ends(axes)
    return tuple(size for size, end in zip(axes, ends, strict=True) if low < end <= high)


def _kind(before: Shape, after: Shape) -> str:
    moved = [size for size in set(before) & set(after) if _is_moved(size, before, after)]
    if not moved:
        return ""
    if sorted(before) == sorted(after) and max(before) - min(before) == 1:
        return ""  # `x.view(T, T + 1)` of (T + 1, T): every row is shifted by one more
    return "perhaps" if _splits(before, after) else "mixed"


def _is_moved(size: int, before: Shape, after: Shape) -> bool:
    """Whether the axis of this size stands elsewhere in memory afterwards."""
    if before.count(size) != 1 or after.count(size) != 1:
        return False
    inner = [math.prod(axes[axes.index(size) + 1 :]) for axes in (before, after)]
    return inner[0] != inner[1]


def _splits(before: Shape, after: Shape) -> bool:
    """Whether splitting and joining neighbours leads from one to the other."""
    ends = sorted({*_ends(before[::-1]), *_ends(after[::-1])})
    return all(high % low == 0 for low, high in itertools.pairwise(ends))
