"""From values and gradients to the estimated effect of every cell."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nethook.interp.estimates.cells import Cells
from nethook.interp.estimates.gradients import GradientRun, Values
from nethook.interp.estimates.points import Point
from nethook.interp.estimates.softmax import SoftmaxEffect, WrittenSoftmaxEffect


def effects(
    cells: Cells, points: Sequence[Point], run: GradientRun, source: Values
) -> torch.Tensor:
    """The estimated effects, (points, cells, rows)."""
    each = [_of_point(cells, point, run, source[point]) for point in points]
    return torch.stack(each).to(run.metric.dtype)


def _of_point(cells: Cells, point: Point, run: GradientRun, source: torch.Tensor) -> torch.Tensor:
    """The effects of one point's cells; with dropped layers, the mean of their sizes."""
    outside = [(name, grads) for name, grads in run.grads if not _is_inside(point, name)]
    if not outside:  # every dropped layer holds the point: nothing of its own is dropped
        outside = run.grads
    found = [
        cells.summed(point, _contributions(cells, point, run, grads, source))
        for _, grads in outside
    ]
    if run.grads[0][0] is None:
        return found[0]
    return torch.stack(found).abs().mean(0)


def _contributions(
    cells: Cells, point: Point, run: GradientRun, grads: Values, source: torch.Tensor
) -> torch.Tensor:
    """What each element adds to the effect, in a shape whose dimensions are the point's."""
    written = run.scores.get(point.site)
    if point.site not in run.arguments and written is None:
        # In double precision: differences of half-precision values would lose their digits.
        return (source.double() - run.values[point].double()) * grads[point].double()
    grad = grads[Point(point.site, "z", point.attention)]
    softmax = (
        SoftmaxEffect(run.arguments[point.site], grad)
        if written is None
        else WrittenSoftmaxEffect(written, grad)
    )
    if point.part == "q":
        return softmax.of_queries(source)[..., None]  # (B, H, Q, 1)
    if "positions" in cells.axes:
        return softmax.of_each_key(source)[..., None]  # (B, H, K, 1)
    return softmax.of_all_keys(source)[..., None, None]


def _is_inside(point: Point, layer: str | None) -> bool:
    """Whether a point lies in a layer, whose dropping would hide the point itself."""
    if layer is None:
        return False
    module = point.site.partition("/")[0]
    return module == layer or module.startswith(f"{layer}.")
