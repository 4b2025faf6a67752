"""`Direction`: a line in the values of a site, with its scale; it steers and is projected out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from nethook.drawing.data import Spec
from nethook.editing.catalogue import Limit, project_out, steer
from nethook.editing.limits import Places
from nethook.errors import OptionError
from nethook.interp.directions.curve import SteeringCurve, steering_curve
from nethook.interp.results.result import Result
from nethook.text.table import Table


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Direction(Result):
    """A unit vector along the last dimension of a site, and how far values lie along it.

    Attributes:
        site: the address it was found at; "" for features without a model.
        path: the part of the site's output, where that is nested.
        vector: the direction, of length 1.
        std: the standard deviation of the projections of all examples: the unit of strengths.
        positive, negative: the projections of the examples of either kind.
        method: how it was found.
    """

    _FORMAT: ClassVar[str] = "nethook_direction"

    vector: torch.Tensor
    std: float
    positive: torch.Tensor
    negative: torch.Tensor
    site: str = ""
    path: str = ""
    method: str = "mean"

    @property
    def gap(self) -> float:
        """How far the means of positive and negative lie apart, in standard deviations."""
        return float(self.positive.mean() - self.negative.mean()) / self.std

    @property
    def auc(self) -> float:
        """The probability that a positive example lies above a negative one; ties count half."""
        above = (self.positive[:, None] > self.negative).double()
        same = (self.positive[:, None] == self.negative).double()
        return float((above + same / 2).mean())

    def project(self, values: torch.Tensor) -> torch.Tensor:
        """Values (…, features) along the direction, in standard deviations: (…)."""
        return values.double() @ self.vector.to(values.device).double() / self.std

    def steer(
        self,
        strength: float,
        *,
        phase: str | None = "all",
        positions: Places = None,
        rows: Places = None,
        calls: Limit = None,
    ) -> steer:
        """An edit that adds `strength` standard deviations to the projection of each token.

            with nethook.edit(model, outputs={"h.5": v.steer(4.0, phase="decode")}):
                model.generate(...)

        `phase` says which tokens of a generation: "prompt", "decode" or "all"; never padding.
        """
        return steer(
            self.vector, strength * self.std, phase=phase, positions=positions, rows=rows,
            calls=calls,
        )  # fmt: skip

    def project_out(self, *, phase: str | None = "all", positions: Places = None) -> project_out:
        """An edit that removes the component along the direction."""
        return project_out(self.vector, phase=phase, positions=positions)

    def effects(
        self,
        model: nn.Module,
        inputs: Any,
        *,
        metric: Callable[[Any], torch.Tensor],
        strengths: Sequence[float] = (-8, -4, -2, -1, 0, 1, 2, 4, 8),
        phase: str = "all",
        positions: Places = None,
        progress: bool | None = None,
    ) -> SteeringCurve:
        """A number of the output, per row, under each strength: one forward each.

        Arguments:
            model: the model; everything is left as it was.
            inputs: a tensor, a tuple, a mapping, or `nethook.inputs(...)`.
            metric: from the model's output to one number per row.
            strengths: in standard deviations.
            phase, positions: which tokens are steered.
            progress: whether to show a bar; None: on a terminal and in a notebook.
        """
        if not self.site:
            raise OptionError(
                "`effects` must know where to steer; got a direction without a site. Find it with "
                "interp.direction(model, ...), or set it: dataclasses.replace(v, site='h.5')."
            )
        path = self.path

        def edited(strength: float) -> Any:
            edit = self.steer(strength, phase=phase, positions=positions)
            return {self.site: {path: edit} if path else edit}

        return steering_curve(model, inputs, edited, metric, strengths, self.site, progress)

    def spec(self) -> Spec:
        """The figure as plain data: how the projections of either kind are distributed."""
        from nethook.drawing.studies.groups import groups

        shown = {"negative": self.negative / self.std, "positive": self.positive / self.std}
        return groups(
            f"Projections at {self.site or 'the features'}",
            {name: values.double().numpy() for name, values in shown.items()},
            unit="standard deviations along the direction",
        )

    def table(self) -> Table:
        """Means and spreads of either kind."""
        title = (
            f"direction at {self.site or 'features'} ({self.method}, {len(self.vector)} features): "
            f"gap {self.gap:.3g} std, AUC {self.auc:.3g}; 1 std is {self.std:.4g}"
        )
        rows = [
            (name, str(len(values)), f"{float(values.mean()) / self.std:.3g}",
             f"{float(values.std(correction=0)) / self.std:.3g}")
            for name, values in (("positive", self.positive), ("negative", self.negative))
        ]  # fmt: skip
        columns = ("examples", "rows", "mean (std)", "spread (std)")
        return Table(title, columns, rows, frozenset(columns[1:]))
