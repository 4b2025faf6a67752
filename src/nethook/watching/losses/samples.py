"""How many samples a loss is of, and what it was divided by: asked at every backward pass.

Which node knows it, and how to get there, is found once for each way of making a loss; asking it
takes less than a microsecond. A cross entropy keeps what its mean was divided by, so targets that
are left out (`ignore_index`) and weights of classes count as they do for torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from nethook.torch_private import saved_by, saved_without_hooks
from nethook.watching.losses.graph import LOSS_NODES, Node, Term, factor_of, name_of

_REDUCTIONS: Final = frozenset({"Mean", "Sum", "Nansum"})
_OF_CLASSES: Final = frozenset({"NllLoss", "NllLoss2D"})
_WHOLE: Final = 1e-4  # how near to a whole number a division by one is, as float32 has it

UNKNOWN: Final = float("nan")
"""The divisor where reading it would wait for a device."""


@dataclass(frozen=True)
class Counting:
    """Where the number of samples of a loss stands.

    Arguments:
        edges: from the root to the node that knows it.
        saved: what that node has kept: `total_weight`, a tensor with samples along `dim`, or
            `sizes`; "" where no node knows.
        factors: the edges from the root to the last number that the loss was multiplied by; None
            where there is none.
        own: the part of these that is no division: that of label smoothing.
        summed: whether the loss is a sum over samples rather than a mean.
    """

    edges: tuple[int, ...] = ()
    saved: str = ""
    dim: int = 0
    factors: tuple[int, ...] | None = None
    own: float = 1.0
    summed: bool = False

    def samples(self, root: Node) -> torch.Tensor | float | None:
        """The samples of this pass; None where that is not known, a tensor if on a device."""
        if not self.saved:
            return None
        try:
            node = root
            for edge in self.edges:
                node = node.next_functions[edge][0]
            if self.saved == "sizes":
                sizes = saved_by(node, "self_sym_sizes")
                return float(sizes[self.dim]) if sizes else None
            tensor = saved_without_hooks(node, self.saved)
            if tensor is None:
                return None
            if self.saved == "total_weight":
                return tensor.item() if tensor.is_cpu else tensor.detach()
            return float(tensor.shape[self.dim])
        except (AttributeError, IndexError, RuntimeError, TypeError):
            return None

    def divisor(self, root: Node, *, scaled: bool) -> float | None:
        """The whole number that the loss was divided by, if it was by one."""
        if self.factors is None:
            return None
        product = 1.0
        node = root
        for edge in (*self.factors, -1):
            factor = factor_of(node)
            if factor is not None and not factor.tensor:
                if scaled:
                    scaled = False  # the first is that of the scaler
                elif factor.by is None:
                    return UNKNOWN
                else:
                    product *= factor.by
            if edge >= 0:
                node = node.next_functions[edge][0]
        product /= self.own
        divisor = 1.0 / product if product > 0 else 0.0
        whole = round(divisor)
        return float(whole) if whole >= 2 and abs(divisor - whole) < _WHOLE * whole else None


NOTHING: Final = Counting()
"""How to count where nothing is known."""


def counting_of(term: Term, reduction: str | None, smoothing: float | None = None) -> Counting:
    """How to count the samples of a term, whose nodes are there."""
    edges = tuple(edge for edge, _ in term.steps)
    name = name_of(term.node)
    # What a cross entropy of probabilities is divided by is a part of its mean, and not told apart.
    factors = None if name == "LogSoftmax" else _factors(term)
    rest = (factors, 1.0 - (smoothing or 0.0), reduction == "sum")
    if name in _OF_CLASSES and saved_by(term.node, "reduction") in (1, 2):
        return Counting(edges, "total_weight", 0, *rest)
    if name in ("CtcLoss", "CudnnCtcLoss"):
        return Counting(edges, "log_probs", 1, *rest)
    if name in LOSS_NODES and name not in _OF_CLASSES:
        return Counting(edges, "self", 0, *rest)
    if name == "LogSoftmax":
        return Counting(edges, "result", 0, *rest)
    for index, node in enumerate(term.passed):
        if name_of(node) in _REDUCTIONS and saved_by(node, "self_sym_sizes"):
            return Counting(edges[:index], "sizes", 0, *rest)
    return Counting((), "", 0, *rest)


def _factors(term: Term) -> tuple[int, ...] | None:
    """The edges to the last node that multiplies by one number."""
    found = [factor_of(node) for node in term.passed]
    numbers = [index for index, by in enumerate(found) if by is not None and not by.tensor]
    return tuple(edge for edge, _ in term.steps[: numbers[-1]]) if numbers else None


def length_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float | None:
    """The length of the first tensor that a model was given: its samples, as a rule."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, torch.Tensor):
            return float(value.shape[0]) if value.dim() else None
    return None
