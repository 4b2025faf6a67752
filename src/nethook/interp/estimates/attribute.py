"""`attribute`: what `sweep` would find, estimated from two forwards and a backward."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import nn

from nethook.addresses.inputs import as_inputs
from nethook.addresses.patterns import Pattern
from nethook.errors import OptionError
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.attention.heads import heads
from nethook.interp.attention.roles import roles
from nethook.interp.devices import device_of
from nethook.interp.estimates.cells import cells_of, read_axes, token_columns
from nethook.interp.estimates.effects import effects
from nethook.interp.estimates.estimate import Estimate, Study
from nethook.interp.estimates.gradients import base_gradients, record
from nethook.interp.estimates.layout import rows_first
from nethook.interp.estimates.points import Part, Point, head_points
from nethook.interp.estimates.sites import module_points, within
from nethook.restoring.unchanged import unchanged

Over = Literal["positions", "heads", "units"] | tuple[str, str] | None
Metric = Callable[[Any], torch.Tensor]


def attribute(
    model: nn.Module,
    base: Any,
    source: Any,
    at: Pattern,
    *,
    metric: Metric,
    over: Over = None,
    part: Part = "z",
    qk_fix: bool = True,
    drop: Sequence[str] | Literal["parts"] | None = None,
    steps: int = 1,
) -> Estimate:
    """Attribution patching: the effect of every cell of a sweep, estimated from gradients.

        e = interp.attribute(model, base, source, at="transformer.h.*", over="positions", metric=fn)
        e = interp.attribute(model, base, source, at="transformer.h.*", over="heads", metric=fn)
        e.top(); e.figure(); e.verify(top=20, sample=20)

    The effect of taking a cell's value from the source run is estimated as
    Σ (source − base) · dM/d(value) in the base run. It is exact where the rest of the model is
    linear, and can be far off where it is not: `verify` runs some cells and says how far.

    Arguments:
        model: any `nn.Module`.
        base: inputs of the run that is changed.
        source: inputs of the run that values are taken from, of the same shapes.
        at: which modules or operations, as in `trace`; with heads, the modules whose attentions
            (their own and those inside them) are meant.
        metric: `fn(output)` gives one number per row.
        over: None (each value as a whole), "positions", "heads", "units", or two of them:
            `("heads", "positions")`.
        part: with heads: "z" (what they return), or "q", "k", "v" (what they are given).
        qk_fix: for "q" and "k", compute the softmax anew instead of taking its gradient, which is
            almost zero where the softmax is saturated.
        drop: GradDrop: addresses of layers, or "parts": all attentions and MLPs that `roles` finds.
            The estimate is then the mean size of the effect over backward passes, in each of which
            no gradient passes one of the layers, so that paths that cancel are seen. It has no
            sign.
        steps: points of Gauss–Legendre quadrature between base and source, at which gradients are
            taken; the path begins at the first of the sites. 1 is the gradient at the base.

    Returns:
        A `Sweep` whose values are estimates, with `.verify(...)`.

    Cost: two forwards and one backward, whatever the number of sites and cells. One forward more
    with heads, one of `steps` times the rows with steps; one backward per dropped layer.
    """
    started = time.perf_counter()
    axes = read_axes(over)
    if type(steps) is not int or steps < 1:
        raise OptionError(f"`steps` must be a positive number; got {steps!r}.")
    if steps > 1 and drop:
        raise OptionError("`steps` and `drop` exclude each other: give one of them.")
    given, other = as_inputs(base), as_inputs(source)
    device_of(model)  # an error where it has no values
    columns = token_columns(model, given) if "positions" in axes else None
    if columns is not None and not _same(columns, token_columns(model, other)):
        raise OptionError(
            '`source` must be padded as `base` is, row by row, for over="positions"; got another '
            "padding."
        )
    points: list[Point]
    runs = 0
    if drop == "parts":
        drop = [write.address for block in roles(model, base) for write in block.writes]
        runs += 1
    elif isinstance(drop, str):
        raise OptionError(f'`drop` must be a list of addresses or "parts"; got {drop!r}.')
    if "heads" in axes:
        points = head_points(within(model, heads(model, base), at), part)
        runs += 1
    else:
        points = module_points(model, at)
    with unchanged(model, (given, other), evaluation=True), layer_by_layer():
        there, source_metric = record(model, other, points, metric)
        assert source_metric is not None
        there, more = rows_first(model, other, there, len(source_metric))
        points = list(there)  # in order of execution
        run = base_gradients(
            model, given, points, metric, there, drop=tuple(drop or ()), steps=steps,
            softmax=qk_fix and part in ("q", "k") and "heads" in axes,
        )  # fmt: skip
    cells = cells_of(axes, points, run.values, columns)
    found = effects(cells, points, run, there)
    runs += 2 + more + (steps > 1) + bool(run.scores)
    return Estimate(
        sites=tuple(point.name for point in points),
        cells=cells.names,
        over=cells.over,
        values=found + run.metric,
        base=run.metric,
        source=source_metric,
        rows=1,
        runs=runs,
        change=_words(part, axes, drop, steps),
        seconds=time.perf_counter() - started,
        estimated=True,
        notes=("GradDrop: sizes of effects, without their sign",) if drop else (),
        study=Study(model, given, points, cells, metric, there),
    )


def _same(one: torch.Tensor, two: torch.Tensor | None) -> bool:
    return two is not None and one.shape == two.shape and torch.equal(one, two)


def _words(part: str, axes: tuple[str, ...], drop: Any, steps: int) -> str:
    what = f"take(source), {part} of heads" if "heads" in axes else "take(source)"
    how = ", GradDrop" if drop else f", {steps} steps" if steps > 1 else ""
    return what + how
