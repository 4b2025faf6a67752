"""Two runs: the source's values, and the base's values with the gradient of the metric.

The gradient of a value is that of a zero which is added to it, so writes in place behind it cannot
reach it. It counts all uses of the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors, replace, tensors
from nethook.errors import OptionError
from nethook.interp.estimates.points import Point, attach
from nethook.interp.estimates.replay import Scores, written_scores
from nethook.interp.rows import repeat_rows
from nethook.restoring.copies import own_inputs

Metric = Callable[[Any], torch.Tensor]
Values = dict[Point, torch.Tensor]
_ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


@dataclass(frozen=True)
class GradientRun:
    """The base run: metric per row, values, and gradients, once per dropped layer."""

    metric: torch.Tensor
    values: Values
    grads: list[tuple[str | None, Values]]
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict)  # of fused attentions
    scores: dict[str, Scores] = field(default_factory=dict)  # of those that are written out


def numbers(metric: Metric, output: Any, rows: int | None = None) -> torch.Tensor:
    """What a metric gives, checked to be one number per row."""
    value: Any = metric(output)
    if not isinstance(value, torch.Tensor) or value.ndim != 1 or rows not in (None, len(value)):
        got = (
            f"shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else repr(type(value))
        )
        raise OptionError(
            "`metric` must give one number per row of the batch, a tensor of shape (rows,); got "
            f"{got}. Do not average over rows: lambda out: out.logits[:, -1, token]."
        )
    return value


def record(
    model: nn.Module, inputs: Inputs, points: Sequence[Point], metric: Metric | None
) -> tuple[Values, torch.Tensor | None]:
    """The values of points in one run, and its metric.

    Gradients are on as in the base run: some kernels round otherwise without them, and a source
    that is the base must have no effect at all.
    """
    values: Values = {}

    def keep(point: Point, value: torch.Tensor) -> torch.Tensor:
        if point in values:
            raise OptionError(_several(point))
        values[point] = value.detach().clone()
        return value + torch.zeros_like(value, requires_grad=True)

    with weights_frozen(model), torch.enable_grad(), attach(model, points, keep):
        output = own_inputs(inputs).call(model)
    return values, None if metric is None else numbers(metric, output).detach()


def base_gradients(
    model: nn.Module,
    inputs: Inputs,
    points: Sequence[Point],
    metric: Metric,
    source: Values,
    *,
    drop: tuple[str, ...] = (),
    steps: int = 1,
    softmax: bool = False,
) -> GradientRun:
    """The base run with gradients; along a path to the source where there are several steps."""
    leaves: Values = {}
    values: Values = {}
    dropping: list[str] = [""]

    def tap(point: Point, value: torch.Tensor) -> torch.Tensor:
        if point in values:
            raise OptionError(_several(point))
        if point in source and value.shape != source[point].shape:
            raise OptionError(
                f"`source` must have the shapes of `base`, {tuple(value.shape)} at {point.name!r}; "
                f"got {tuple(source[point].shape)}. Choose texts of the same number of tokens."
            )
        values[point] = value.detach().clone()
        leaves[point] = torch.zeros_like(value, requires_grad=True)
        return value + leaves[point]

    blocked = {name: _dropper(name, dropping) for name in drop}
    asked = list(points)
    arguments: dict[str, dict[str, Any]] = {}

    def note(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = dict(zip(_ARGUMENTS, args, strict=False)) | kwargs
        arguments[op] = map_tensors(torch.Tensor.detach, given)

    if softmax:  # dM/dp comes from dM/dz, which is needed beside q or k
        asked += [Point(p.site, "z", p.attention) for p in points]
    with (
        weights_frozen(model),
        torch.enable_grad(),
        attach(model, asked, tap, gates=blocked, called=note if softmax else None),
    ):
        output = own_inputs(inputs).call(model)
        measured = numbers(metric, output)
        order = list(leaves)
        grads: list[tuple[str | None, Values]] = []
        for name in drop or (None,):
            dropping[0] = name or ""
            found: Sequence[torch.Tensor | None] = torch.autograd.grad(
                measured.sum(), [leaves[p] for p in order], retain_graph=True, allow_unused=True
            )
            grads.append((name, {
                point: torch.zeros_like(leaves[point]) if grad is None else grad
                for point, grad in zip(order, found, strict=True)
            }))  # fmt: skip
    run = GradientRun(measured.detach(), values, grads, arguments)
    written = [p.attention for p in points if _is_written(p) and p.attention is not None]
    if softmax and written:
        run.scores.update(written_scores(model, inputs, written))
    if steps == 1:
        return run
    return _along_a_path(model, inputs, points, metric, source, run, steps)


def _along_a_path(
    model: nn.Module, inputs: Inputs, points: Sequence[Point], metric: Metric, source: Values,
    run: GradientRun, steps: int,
) -> GradientRun:  # fmt: skip
    """Gradients averaged over points between base and source of the first site, as one batch."""
    first = next(iter(run.values))
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    base, batch = run.values[first], len(run.metric)
    times = torch.tensor((nodes + 1) / 2, dtype=torch.float64)
    leaves: Values = {}

    def move(point: Point, value: torch.Tensor) -> torch.Tensor:
        if point == first:
            step = (source[first] - base).to(value.dtype)
            value = torch.cat([base + float(t) * step for t in times])
        leaves[point] = torch.zeros_like(value, requires_grad=True)
        return value + leaves[point]

    with weights_frozen(model), torch.enable_grad(), attach(model, points, move):
        output = repeat_rows(own_inputs(inputs), steps, batch).call(model)
        measured = numbers(metric, output, steps * batch)
        order = list(leaves)
        found: Sequence[torch.Tensor | None] = torch.autograd.grad(
            measured.sum(), [leaves[p] for p in order], allow_unused=True
        )
    share = torch.tensor(weights / 2, dtype=torch.float64)
    mean: Values = {}
    for point, grad in zip(order, found, strict=True):
        each = torch.zeros_like(leaves[point]) if grad is None else grad
        split = each.unflatten(0, (steps, batch)).double()
        mean[point] = torch.tensordot(share.to(split.device), split, dims=1)
    return GradientRun(run.metric, run.values, [(None, mean)], run.arguments, run.scores)


def _dropper(name: str, dropping: list[str]) -> Callable[[Any], Any]:
    """An edit of a layer's output that lets no gradient through while the layer is dropped."""

    def change(value: Any) -> Any:
        path, first = tensors(value)[0]
        gated = _Gate.apply(first, name, dropping)  # type: ignore[no-untyped-call]
        return replace(value, path, gated)

    return change


class _Gate(torch.autograd.Function):
    """The same value, with a gradient of zero while its name is the one that is dropped."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, name: str, dropping: list[str]) -> torch.Tensor:
        ctx.name, ctx.dropping = name, dropping
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        (grad,) = grads
        return torch.zeros_like(grad) if ctx.dropping[0] == ctx.name else grad, None, None


@contextmanager
def weights_frozen(model: nn.Module) -> Iterator[None]:
    """No gradient of weights is computed: only those of values are wanted."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_()


def _is_written(point: Point) -> bool:
    return point.attention is not None and point.attention.form == "written out"


def _several(point: Point) -> str:
    return (
        f"{point.name!r} runs several times in one forward, so its value is not one. Study a site "
        "that runs once, or interp.sweep with calls=."
    )
