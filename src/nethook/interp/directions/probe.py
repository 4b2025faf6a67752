"""`Probe`: what a linear readout finds in features, beside a control and a baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from nethook.drawing.data import Spec
from nethook.errors import OptionError, ResultError
from nethook.interp.directions.direction import Direction
from nethook.interp.results.result import Result
from nethook.interp.results.statistics import interval_over_rows
from nethook.text.table import Table

_COLUMNS = ("site", "score", "95 % interval", "control", "selectivity", "baseline", "penalty")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Probe(Result):
    """The result of `interp.probe`. Scores are of rows that the weights were not fitted to.

    Attributes:
        score: accuracy, or R² where labels are numbers; the mean over all rows.
        parts: the score of each group (each row, where there are no groups; each fold, for R²).
        control: the score with shuffled labels.
        baseline: the score of always saying the most frequent class (R²: 0).
        weights, bias: of a fit to all rows: (outputs, features), (outputs,). Two classes have one
            output, positive for the second class.
        classes: the names of the classes; () where labels are numbers.
        penalty: the regularisation that was chosen.
        projections: the outputs for every row, (samples, outputs); `labels` as they were fitted.
        kind: "ridge" or "logistic".
        folds: of the cross-validation.
    """

    _FORMAT: ClassVar[str] = "nethook_probe"

    score: float
    parts: torch.Tensor
    control: float
    baseline: float
    weights: torch.Tensor
    bias: torch.Tensor
    projections: torch.Tensor
    labels: torch.Tensor
    classes: tuple[str, ...]
    penalty: float
    kind: str
    folds: int
    site: str = ""

    @property
    def selectivity(self) -> float:
        """How much better the score is than the control's."""
        return self.score - self.control

    @property
    def metric(self) -> str:
        """What the score is."""
        return "accuracy" if self.classes else "R²"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Student's t interval of the score: groups (or rows, or folds) taken as independent."""
        low, high = interval_over_rows(self.parts[None], confidence)
        return float(low), float(high)

    def scores_of(self, values: torch.Tensor) -> torch.Tensor:
        """The outputs for features (…, features): (…, outputs)."""
        return values.double() @ self.weights.T.to(values.device) + self.bias.to(values.device)

    def predict(self, values: torch.Tensor) -> torch.Tensor:
        """The number of the class of each row (see `classes`), or the number itself."""
        found = self.scores_of(values)
        if not self.classes:
            return found.squeeze(-1)
        return (found[..., 0] > 0).long() if found.shape[-1] == 1 else found.argmax(-1)

    @property
    def direction(self) -> Direction:
        """The direction of the weights: towards the second of two classes, or larger numbers."""
        if len(self.weights) != 1:
            raise ResultError(
                f"`direction` is not defined for {len(self.weights)} outputs. Choose one: "
                f"direction_of({self.classes[0] if self.classes else 0!r})."
            )
        return self._along(0, self.labels > self.labels.double().mean())

    def direction_of(self, name: str) -> Direction:
        """The direction of the weights of one class."""
        if name not in self.classes:
            raise OptionError(
                f"`name` must be one of the classes {', '.join(self.classes)}; got {name!r}."
            )
        number = self.classes.index(name)
        if len(self.weights) == 1:
            found = self.direction
            return found if number else Direction(
                vector=-found.vector, std=found.std, positive=-found.negative,
                negative=-found.positive, site=found.site, method=found.method,
            )  # fmt: skip
        return self._along(number, self.labels == number)

    def _along(self, output: int, positive: torch.Tensor) -> Direction:
        length = float(self.weights[output].norm())
        if not length > 0:
            raise ResultError("`direction` is not defined: all weights of the probe are zero.")
        along = (self.projections[:, output] - self.bias[output]) / length
        return Direction(
            vector=self.weights[output] / length, std=float(along.std(correction=1)),
            positive=along[positive], negative=along[~positive], site=self.site,
            method=f"{self.kind} probe",
        )  # fmt: skip

    def spec(self) -> Spec:
        """The figure as plain data: the score with its interval, its control and its baseline."""
        return Probes({self.site: self}).spec()

    def table(self) -> Table:
        """One line with every number."""
        return Probes({self.site: self}).table()


class Probes(Mapping[str, Probe]):
    """Probes of several sites, by address: `probes["layer3"]`."""

    def __init__(self, by_site: Mapping[str, Probe]) -> None:
        self._by_site = dict(by_site)

    def __getitem__(self, site: str) -> Probe:
        return self._by_site[site]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_site)

    def __len__(self) -> int:
        return len(self._by_site)

    def figure(self, *, theme: str = "light") -> Any:
        """A Plotly figure: a bar per site with its interval, beside its control."""
        from nethook.drawing.rendering.render import figure

        return figure(self.spec(), theme)

    def spec(self) -> Spec:
        """The figure as plain data."""
        import numpy as np

        from nethook.drawing.studies.scores import score_bars

        probes = list(self.values())
        ends = np.array([probe.interval() for probe in probes])
        return score_bars(
            f"{probes[0].kind} probes", [site or "features" for site in self],
            np.array([p.score for p in probes]), ends[:, 0], ends[:, 1],
            control=np.array([p.control for p in probes]),
            baseline=np.array([p.baseline for p in probes]), unit=probes[0].metric,
        )  # fmt: skip

    def table(self) -> Table:
        """A line per site."""
        first = next(iter(self.values()))
        rows = [_row(site or "features", probe) for site, probe in self.items()]
        width = first.weights.shape[1]
        what = f"{len(first.classes)} classes" if first.classes else "numbers"
        title = (
            f"{first.kind} probe of {what} from {width} features, {len(first.labels)} rows, "
            f"{first.folds} folds; score is {first.metric}"
        )
        return Table(title, _COLUMNS, rows, frozenset(_COLUMNS[1:]))

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def _row(site: str, probe: Probe) -> tuple[str, ...]:
    low, high = probe.interval()
    ends = "–" if math.isnan(low) else f"{low:.3f} … {high:.3f}"
    return (
        site, f"{probe.score:.3f}", ends, f"{probe.control:.3f}", f"{probe.selectivity:+.3f}",
        f"{probe.baseline:.3f}", f"{probe.penalty:.3g}",
    )  # fmt: skip
