"""The op-wise rule: an operation whose backward is its Jacobian integrated between two inputs.

The operation computes what it always does. On the way back, the gradient of its result becomes
Σ_k w_k J(a' + t_k (a − a'))ᵀ g, with a its input and a' that of the run on the baseline. So the
result's change times g is the input's change times what is passed on: the sum that attributions
must have is kept by every operation, and hence by the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from nethook.addresses.nested import map_tensors, tensors
from nethook.interp.attributions.op_wise.pooling import pool_gradient

_SAME = 1e-5  # of two numbers' size: nearer ones have no quotient but noise

Call = Callable[..., Any]


@dataclass(frozen=True)
class Rule:
    """How one call of an operation passes a gradient back."""

    kind: str
    function: Call  # of the tensors that depend on the input; all else is bound
    base: tuple[torch.Tensor, ...]  # these tensors in the run on the baseline
    nodes: int
    pool: tuple[Any, Any] = ((), {})  # the arguments of a pooling


class _Ruled(torch.autograd.Function):
    """The operation itself, with another way back."""

    @staticmethod
    def forward(ctx: Any, rule: Rule, template: list[Any], *given: torch.Tensor) -> Any:
        ctx.rule = rule
        # Copies: the model may write to what the operation was given.
        ctx.given = [tensor.detach().clone() for tensor in given]
        result = rule.function(*[tensor.clone() for tensor in given])
        template.append(result)
        return tuple(t for _, t in tensors(result))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, *passed_back(ctx.rule, ctx.given, grads))


def ruled(rule: Rule, given: Sequence[torch.Tensor]) -> Any:
    """The result of an operation on tensors, which passes gradients back by a rule."""
    template: list[Any] = []
    found = iter(_Ruled.apply(rule, template, *given))  # type: ignore[no-untyped-call]
    return map_tensors(lambda _: next(found), template[0])


def passed_back(
    rule: Rule, given: Sequence[torch.Tensor], grads: Sequence[torch.Tensor | None]
) -> list[torch.Tensor]:
    """The gradients for the tensors of an operation."""
    if rule.kind == "elementwise" and grads[0] is not None:
        return [_quotient(rule, given[0]) * grads[0]]
    if rule.kind == "pool" and grads[0] is not None:
        args, kwargs = rule.pool
        found = pool_gradient(given[0], rule.base[0], grads[0], *args, **kwargs)
        if found is not None:
            return [found]
    times, shares = _nodes(1 if rule.kind == "product" else rule.nodes)
    total = [torch.zeros_like(tensor) for tensor in given]
    for time, share in zip(times, shares, strict=True):
        places = [
            (base + time * (tensor - base)).detach().requires_grad_()
            for tensor, base in zip(given, rule.base, strict=True)
        ]
        for place, grad in enumerate(_gradients(rule.function, places, grads)):
            if grad is not None:
                total[place] += share * grad
    return total


def _gradients(
    function: Call, places: Sequence[torch.Tensor], grads: Sequence[torch.Tensor | None]
) -> Sequence[torch.Tensor | None]:
    with torch.enable_grad():
        # Clones: an operation in place may not write to a leaf.
        results = [t for _, t in tensors(function(*[place.clone() for place in places]))]
    pairs = [
        (result, grad)
        for result, grad in zip(results, grads, strict=True)
        if grad is not None and result.requires_grad
    ]
    if not pairs:
        return [None] * len(places)
    found: Sequence[torch.Tensor | None] = torch.autograd.grad(
        [result for result, _ in pairs], places, [grad for _, grad in pairs], allow_unused=True
    )
    return found


def _quotient(rule: Rule, given: torch.Tensor) -> torch.Tensor:
    """(f(a) − f(a')) / (a − a'); where the two are almost the same, the slope between them."""
    (base,) = rule.base
    apart = given - base
    near = apart.abs() <= _SAME * torch.maximum(given.abs(), base.abs())
    with torch.no_grad():
        change: torch.Tensor = rule.function(given.clone()) - rule.function(base.clone())
    quotient = change / torch.where(near, torch.ones_like(apart), apart)
    if not bool(near.any()):
        return quotient
    middle = ((given + base) / 2).detach().requires_grad_()
    slope = _gradients(rule.function, [middle], [torch.ones_like(change)])[0]
    return quotient if slope is None else torch.where(near, slope, quotient)


@cache
def _nodes(count: int) -> tuple[list[float], list[float]]:
    """Points between 0 and 1 and their weights: Gauss–Legendre; one is the middle."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return ((nodes + 1) / 2).tolist(), (weights / 2).tolist()
