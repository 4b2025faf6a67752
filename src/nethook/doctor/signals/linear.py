"""Layers with weights that follow each other with nothing non-linear between them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from nethook.doctor.history import History
from nethook.kinds.operations import LINEAR_LAYERS

_NORM: Final = "batch_norm"
"""With the statistics of its run it is one factor and one offset per channel."""


class Pair(NamedTuple):
    """The addresses of two layers."""

    first: str
    second: str
    normed: bool
    """Whether a batch norm stands between them."""


def linear_pairs(history: History) -> Iterator[Pair]:
    """Two layers each, from the operations of the first training pass.

    An operation that takes a parameter of its module's and is linear is a layer; the next layer is
    found through operations that are linear, too, and take one input, or through batch norms. A
    pair whose space between is narrower than both sides is a factorised layer, and is meant.
    """
    ops = [op for op in history.info("ops", []) if isinstance(op, dict)]
    sizes = _layer_sizes(history)
    # Of each operation: the layers it is a linear function of, and whether through a norm.
    behind: list[set[tuple[int, bool]]] = []
    for index, op in enumerate(ops):
        sources = [
            source for source in op.get("from") or [] if isinstance(source, int) and source < index
        ]
        reached: set[tuple[int, bool]] = (
            set().union(*(behind[source] for source in sources)) if sources else set()
        )
        # A sum of two ways (a skip connection) is more than one linear layer could be.
        if len(set(sources)) > 1:
            behind.append(set())
        elif op.get("op") == _NORM:
            behind.append({(first, True) for first, _ in reached})
        elif not op.get("linear"):
            behind.append(set())
        elif op.get("op") in LINEAR_LAYERS and str(op.get("site")) in sizes:
            for first, normed in sorted(reached):
                pair = Pair(str(ops[first].get("site")), str(op.get("site")), normed)
                if pair.first != pair.second and not _is_factorised(
                    sizes[pair.first], sizes[pair.second]
                ):
                    yield pair
            behind.append({(index, False)})
        else:
            behind.append(reached)


def _layer_sizes(history: History) -> dict[str, tuple[int, int]]:
    """Of each module with a weight of its own: how much goes in and comes out, per sample."""
    sizes: dict[str, tuple[int, int]] = {}
    for parameter in history.parameters:
        shape: list[Any] = parameter.fact("shape", [])
        if len(shape) >= 2:
            for owner in parameter.fact("owners", []):
                grouped = len(shape) > 2 and shape[1] == 1  # depthwise: each channel by itself
                if not grouped:
                    sizes.setdefault(str(owner), (math.prod(shape[1:]), int(shape[0])))
    return sizes


def _is_factorised(first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Whether the space between two layers is narrower than what goes in and what comes out."""
    between = first[1]
    return between < first[0] and between < second[1]
