"""The 645 bins of a histogram, for programs that take edges, and fewer of them."""

from __future__ import annotations

import numpy as np

from nethook.sinks.sink import Counts, Edges
from nethook.stats.fields import magnitude_edges


def bin_edges() -> Edges:
    """Where the 645 bins begin and end: 646 numbers, in ascending order.

    The bin of zero has no width: it lies between −0.0 and 0.0, as floats have them. The outermost
    bins end at twice their beginning.
    """
    sides = magnitude_edges()[1:]
    outer = sides[-1:] * 2
    return np.concatenate((-outer, -sides[::-1], [-0.0, 0.0], sides, outer))


def fold(counts: Counts, edges: Edges, most: int) -> tuple[Counts, Edges]:
    """A histogram of at most so many bins: empty ends are cut off, then neighbours are joined.

    No count is lost, and every edge that is left is one that was there.
    """
    there = np.flatnonzero(counts)
    if not there.size:
        return counts[:1], edges[:2]
    first, last = int(there[0]), int(there[-1]) + 1
    counts, edges = counts[first:last], edges[first : last + 1]
    together = -(-len(counts) // most)
    if together == 1:
        return counts, edges
    starts = np.arange(0, len(counts), together)
    return np.add.reduceat(counts, starts), np.append(edges[starts], edges[-1])


def quantiles(counts: Counts, edges: Edges, shares: list[float]) -> list[float]:
    """The middles of the bins in which these shares of all elements are reached."""
    total = counts.sum()
    if not total:
        return [float("nan")] * len(shares)
    running = np.cumsum(counts)
    places = [int(np.searchsorted(running, share * total)) for share in shares]
    return [float((edges[place] + edges[place + 1]) / 2) for place in places]
