"""One node of an autograd graph, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node: what it is, what it made, and whence its gradients go.

    `address` and `call` say which call made it, where a tape knows; `leaf` names the parameter to
    whose `.grad` it adds (or says `input` where no model knows the tensor), else it is None.
    `inputs` are the numbers of the nodes that it passes gradients to.
    """

    index: int
    name: str
    shapes: tuple[tuple[int, ...], ...]  # of what it made in the forward
    dtypes: tuple[str, ...]
    address: str | None
    call: int | None
    leaf: str | None
    inputs: tuple[int, ...]
