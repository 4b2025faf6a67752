"""One series as several ranks have measured it, put together.

Outputs of ranks are of different samples: all of them count. A parameter is the same on every rank
(DDP), or each holds a part of it (FSDP2, tensor parallel): each part counts once, from whichever
rank has seen most of it. Norms of the loop are of what a rank holds, scaled so that the root of
their mean square is the norm of it all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from nethook.runs.names import GRAD_NORM, GRAD_NORM_UNCLIPPED, LOOP, PART, UPDATE_RATIO
from nethook.runs.reading.comparing.align import Integers, add_onto, merge_onto
from nethook.stats.fields import INDEX, WIDTH, Matrix, empty_rows, merge_rows

ROOTS: Final = frozenset({GRAD_NORM, GRAD_NORM_UNCLIPPED, UPDATE_RATIO})
"""Numbers of the loop that are roots of sums over all parameters."""


class OfRank(NamedTuple):
    """What one rank has of a series: a row and `seen` for each of its windows."""

    place: Integers  # where each window belongs on the common axis
    numbers: Matrix  # (windows, FIELDS and `seen`)
    part: tuple[int, int] | None


class Together(NamedTuple):
    """What all ranks have of a series."""

    rows: Matrix
    seen: Integers
    parts: int | None  # how many parts there are; None where every rank counts


def part_in(info: Mapping[str, Any]) -> tuple[int, int] | None:
    """Which part of a parameter a rank holds, as its file says; None where it says nothing."""
    part = info.get(PART)
    if (
        isinstance(part, list)
        and len(part) == 2
        and all(isinstance(number, int) for number in part)
    ):
        index, parts = part
        if 0 <= index < parts <= 1 << 20:
            return index, parts
    return None


def is_root(address: str, quantity: str) -> bool:
    """Whether a number is merged over the ranks of a sharded run as the root of mean squares."""
    return address == LOOP and quantity in ROOTS


def together(length: int, ranks: Sequence[OfRank], *, root: bool = False) -> Together:
    """Puts the windows of all ranks together on an axis of `length` windows."""
    aligned = [_onto(length, of_rank) for of_rank in ranks]
    if root and len(ranks) > 1:
        rows, seen = _root_of_mean_squares(aligned)
        return Together(rows, seen, 1)
    parts = [of_rank.part for of_rank in ranks]
    if None in parts:
        rows, seen = aligned[0]
        for more, saw in aligned[1:]:
            rows, seen = merge_rows(rows, more), seen + saw
        return Together(rows, seen, None)
    rows, seen = empty_rows(length), np.zeros(length, dtype=np.int64)
    for index in sorted({part[0] for part in parts if part is not None}):
        same = [
            rows_and_seen
            for rows_and_seen, part in zip(aligned, parts, strict=True)
            if part is not None and part[0] == index
        ]
        best, saw = same[0]
        for other, other_saw in same[1:]:
            better = other_saw > saw
            best, saw = np.where(better[:, None], other, best), np.where(better, other_saw, saw)
        rows, seen = merge_rows(rows, best), seen + saw
    return Together(rows, seen, max(part[1] for part in parts if part is not None))


def best_counts(counts_of_ranks: Sequence[tuple[Any, tuple[int, int] | None]]) -> Any:
    """Counts of all ranks added up, those of the same part once: (spans, bins)."""
    total = None
    groups: dict[Any, Any] = {}
    for number, (counts, part) in enumerate(counts_of_ranks):
        key = ("rank", number) if part is None else ("part", part[0])
        earlier = groups.get(key)
        if earlier is not None:
            more = counts.sum(axis=1) > earlier.sum(axis=1)
            counts = np.where(more[:, None], counts, earlier)
        groups[key] = counts
    for counts in groups.values():
        total = counts if total is None else total + counts
    return total


def _onto(length: int, rank: OfRank) -> tuple[Matrix, Integers]:
    seen = add_onto(length, rank.place, rank.numbers[:, WIDTH].astype(np.int64))
    return merge_onto(length, rank.place, rank.numbers[:, :WIDTH]), seen


def _root_of_mean_squares(aligned: Sequence[tuple[Matrix, Integers]]) -> tuple[Matrix, Integers]:
    """One number per step again: of each field its root mean square over the ranks."""
    count, mean, m2 = INDEX["count"], INDEX["mean"], INDEX["m2"]
    squares = []
    for rows, _ in aligned:
        number = np.maximum(rows[:, count], 1)
        ends = [rows[:, INDEX[end]] ** 2 for end in ("min", "max")]
        squares.append(np.stack([rows[:, mean] ** 2 + rows[:, m2] / number, *ends]))
    there = np.stack([rows[:, count] > 0 for rows, _ in aligned])
    roots = np.sqrt(
        np.where(there[:, None], np.stack(squares), 0).sum(0) / np.maximum(there.sum(0), 1)
    )
    fewest = np.argmin(np.stack([seen for _, seen in aligned]), axis=0)
    rows = np.stack([of_rank for of_rank, _ in aligned])[fewest, np.arange(len(fewest))]
    measured = rows[:, count] > 0  # a rank without the number leaves it unknown
    for name, column in zip(("mean", "min", "max"), roots, strict=True):
        rows[measured, INDEX[name]] = column[measured]
    rows[measured, m2] = 0.0
    rows[measured, INDEX["mean_low"]] = 0.0
    return rows, np.min(np.stack([seen for _, seen in aligned]), axis=0)
