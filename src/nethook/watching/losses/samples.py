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

from nethook.torch_private import (
    reader_of_saved,
    reader_without_hooks,
    saved_by,
    saved_without_hooks,
)
from nethook.watching.losses.graph import LOSS_NODES, Node, Term, factor_of, name_of

_REDUCTIONS: Final = frozenset({"Mean", "Sum", "Nansum"})
_OF_CLASSES: Final = frozenset({"NllLoss", "NllLoss2D"})
_WHOLE: Final = 1e-4  # how near to a whole number a division by one is, as float32 has it

_Tensor: Final = torch.Tensor
_sizes_of: Final = reader_of_saved("self_sym_sizes")
_total_weight_of: Final = reader_without_hooks("total_weight")

UNKNOWN: Final = float("nan")
"""The divisor where reading it would wait for a device."""


@dataclass(frozen=True)
class Counting:
    """Where the number of samples of a loss stands.

    Arguments:
        path: the edges from the root to the loss itself.
        depth: how far along it the node is that knows the samples.
        saved: what that node has kept: `total_weight`, a tensor with samples along `dim`, or
            `sizes`; "" where no node knows.
        factors: of each number that the loss was multiplied by: how far along the path, what the
            node has kept it as, and whether it divides.
        own: the part of these that is no division: that of label smoothing.
        summed: whether the loss is a sum over samples rather than a mean.
    """

    path: tuple[int, ...] = ()
    depth: int = 0
    saved: str = ""
    dim: int = 0
    factors: tuple[tuple[int, str, bool], ...] = ()
    own: float = 1.0
    summed: bool = False

    def samples(self, root: Node) -> torch.Tensor | float | None:
        """The samples of this pass; None where that is not known, a tensor if on a device."""
        saved = self.saved
        try:
            node, tensor = root, None
            if self.depth:
                for edge in self.path[: self.depth]:
                    node = node.next_functions[edge][0]
            if saved == "total_weight":  # what nearly all classifiers have
                tensor = _total_weight_of(node)
                if type(tensor) is not _Tensor:
                    return None  # of a tensor spread over ranks, only a collective would tell
                return tensor.item() if tensor.is_cpu else tensor.detach()
            if saved == "sizes":
                sizes = _sizes_of(node)
                return float(sizes[self.dim]) if sizes else None
            if saved:
                tensor = reader_without_hooks(saved)(node)
            return None if tensor is None else float(tensor.shape[self.dim])
        except (AttributeError, IndexError, RuntimeError, TypeError):
            return None

    def divisor(self, root: Node, *, scaled: bool) -> float | None:
        """The whole number that the loss was divided by, if it was by one."""
        if not self.factors:
            return None
        try:
            return self._divisor(root, scaled=scaled)
        except (AttributeError, IndexError):  # another graph, on a line that makes many
            return None

    def _divisor(self, root: Node, *, scaled: bool) -> float | None:
        product, node, depth = 1.0 / self.own, root, 0
        for at, name, divides in self.factors:
            while depth < at:
                node = node.next_functions[self.path[depth]][0]
                depth += 1
            if scaled:
                scaled = False  # the first is that of the scaler
                continue
            by = _number(node, name)
            if by is None:
                return UNKNOWN
            product = product * by if not divides else product / by if by else 0.0
        divisor = 1.0 / product if product > 0 else 0.0
        whole = round(divisor)
        return float(whole) if whole >= 2 and abs(divisor - whole) < _WHOLE * whole else None


def _number(node: Node, name: str) -> float | None:
    """A number that a node has kept; None where it cannot be read, or not without waiting."""
    try:
        value = saved_without_hooks(node, name)
        if value is None:
            value = saved_by(node, name)
        if isinstance(value, torch.Tensor):
            plain = type(value) is torch.Tensor and value.is_cpu and not value.dim()
            return value.item() if plain else None
        return float(value) if isinstance(value, int | float) else None
    except (AttributeError, RuntimeError):
        return None


NOTHING: Final = Counting()
"""How to count where nothing is known."""


def counting_of(term: Term, reduction: str | None, smoothing: float | None = None) -> Counting:
    """How to count the samples of a term, whose nodes are there."""
    path = tuple(edge for edge, _ in term.steps)
    name = name_of(term.node)
    # What a cross entropy of probabilities is divided by is a part of its mean, and not told apart.
    factors = () if name == "LogSoftmax" else _factors(term)
    rest = (factors, 1.0 - (smoothing or 0.0), reduction == "sum")
    if name in _OF_CLASSES and saved_by(term.node, "reduction") in (1, 2):
        return Counting(path, len(path), "total_weight", 0, *rest)
    if name in ("CtcLoss", "CudnnCtcLoss"):
        return Counting(path, len(path), "log_probs", 1, *rest)
    if name in LOSS_NODES and name not in _OF_CLASSES:
        return Counting(path, len(path), "self", 0, *rest)
    if name == "LogSoftmax":
        return Counting(path, len(path), "result", 0, *rest)
    for depth, node in enumerate(term.passed):
        if name_of(node) in _REDUCTIONS and saved_by(node, "self_sym_sizes"):
            return Counting(path, depth, "sizes", 0, *rest)
    return Counting(path, 0, "", 0, *rest)


def _factors(term: Term) -> tuple[tuple[int, str, bool], ...]:
    """Where the numbers are that a loss was multiplied by."""
    found = []
    for depth, node in enumerate(term.passed):
        factor = factor_of(node)
        if factor is not None and not factor.tensor:
            kept = "self" if term.steps[depth][0] == 1 else "other"
            found.append((depth, kept, name_of(node) == "Div"))
    return tuple(found)


def length_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float | None:
    """The length of the first tensor that a model was given: its samples, as a rule."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, torch.Tensor):
            # Not by `shape`, which a nested tensor does not have.
            return float(value.size(0)) if value.dim() else None
    return None
