"""`SteeringCurve`: what becomes of a number as a direction is added more and more strongly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from nethook.drawing.data import Spec
from nethook.editing.scope import edit
from nethook.errors import OptionError
from nethook.extracting.progress import Bar
from nethook.interp.batches import rows_of
from nethook.interp.devices import device_of, moved_inputs
from nethook.interp.estimates.gradients import numbers
from nethook.interp.results.result import Result
from nethook.interp.results.statistics import interval_over_rows, mean_over_rows
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged
from nethook.text.table import Table


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SteeringCurve(Result):
    """A metric under each strength: `values`, (strengths, rows); strengths are in std."""

    _FORMAT: ClassVar[str] = "nethook_steering_curve"

    strengths: torch.Tensor
    values: torch.Tensor
    site: str = ""

    @property
    def mean(self) -> torch.Tensor:
        """The mean over rows, (strengths,)."""
        return mean_over_rows(self.values)

    def interval(self, confidence: float = 0.95) -> tuple[torch.Tensor, torch.Tensor]:
        """Student's t interval of the mean over rows: (low, high)."""
        return interval_over_rows(self.values, confidence)

    def spec(self) -> Spec:
        """The figure as plain data: the mean over rows with its interval, over strengths."""
        from nethook.drawing.studies.response import response

        low, high = self.interval()
        return response(
            f"Steering at {self.site}", self.strengths.numpy(), self.mean.numpy(), low.numpy(),
            high.numpy(), axes=("strength (standard deviations)", "metric"),
        )  # fmt: skip

    def table(self) -> Table:
        """Strengths, means and intervals."""
        low, high = self.interval()
        rows = [
            (f"{float(s):g}", f"{float(m):.4g}",
             "–" if math.isnan(float(a)) else f"{float(a):.4g} … {float(b):.4g}")
            for s, m, a, b in zip(self.strengths, self.mean, low, high, strict=True)
        ]  # fmt: skip
        title = f"steering at {self.site}: {len(rows)} strengths, {self.values.shape[1]} rows"
        return Table(title, ("strength", "mean", "95 % interval"), rows, frozenset({"strength"}))


def steering_curve(
    model: nn.Module,
    inputs: Any,
    edited: Callable[[float], Any],
    metric: Callable[[Any], torch.Tensor],
    strengths: Sequence[float],
    site: str,
    progress: bool | None,
) -> SteeringCurve:
    """The metric of a forward under each strength; at 0 nothing is edited."""
    if not strengths:
        raise OptionError("`strengths` must have at least one number; got none.")
    given = moved_inputs(inputs, device_of(model))
    values = []
    bar = Bar(len(strengths), 0, shown=progress, label="steering", unit="rows")
    with unchanged(model, given, evaluation=True), torch.no_grad(), bar:
        for strength in strengths:
            with edit(model, outputs=edited(strength)) if strength else nullcontext():
                output = own_inputs(given).call(model)
            values.append(numbers(metric, output).detach().double().cpu())
            bar.advance(rows_of(given))
    levels = torch.tensor([float(strength) for strength in strengths], dtype=torch.double)
    return SteeringCurve(strengths=levels, values=torch.stack(values), site=site)
