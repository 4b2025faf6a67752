"""`Estimate`: a sweep whose values are estimates, and which can check itself by exact runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.drawing.data import Spec
from nethook.errors import OptionError
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.estimates.cells import Cells
from nethook.interp.estimates.gradients import Values, numbers
from nethook.interp.estimates.points import Point, attach
from nethook.interp.results.result import Result
from nethook.interp.results.sweep import Sweep
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged
from nethook.text.table import Table

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Study:
    """What an exact run of a cell needs."""

    model: nn.Module
    inputs: Inputs
    points: Sequence[Point]
    cells: Cells
    metric: Callable[[Any], torch.Tensor]
    source: Values

    def exact(self, site: int, cell: int) -> torch.Tensor:
        """The metric of the base run with one cell taken from the source."""
        point = self.points[site]

        def take(_: Point, value: torch.Tensor) -> torch.Tensor:
            index = self.cells.index(point, value, cell)
            assert index is not None
            patched = value.clone()
            patched[index] = self.source[point][index].to(value.dtype)
            return patched

        with (
            unchanged(self.model, self.inputs, evaluation=True),
            layer_by_layer(),
            torch.no_grad(),
            attach(self.model, [point], take),
        ):
            return numbers(self.metric, own_inputs(self.inputs).call(self.model))


@dataclass(frozen=True, eq=False, repr=False)
class Verified(Result):
    """Exact runs of some cells, beside their estimates.

    Attributes:
        sites, cells: which cells ran: the largest estimates first, then the random sample.
        top: how many of them are the largest estimates.
        estimated, exact: mean effects over rows, one per cell that ran.
        rank_agreement: Spearman's correlation of the sizes of both; NaN for fewer than three.
        missed: the largest exact size in the sample, which the estimate did not list.
        share: with 95 % confidence, at most this share of the cells that did not run is larger than
            `missed`; 0 where all ran.
    """

    _FORMAT: ClassVar[str] = "nethook_verified"

    sites: tuple[str, ...]
    cells: tuple[str, ...]
    top: int
    estimated: torch.Tensor
    exact: torch.Tensor
    rank_agreement: float
    missed: float
    share: float

    def table(self) -> Table:
        """Estimated and exact effect of every cell that ran."""
        rows = [
            (site, cell, f"{float(e):+.4g}", f"{float(x):+.4g}", "" if i < self.top else "sample")
            for i, (site, cell, e, x) in enumerate(
                zip(self.sites, self.cells, self.estimated, self.exact, strict=True)
            )
        ]
        title = f"rank agreement {self.rank_agreement:.3f}"
        if not math.isnan(self.missed):
            title += (
                f"; largest effect in the sample {self.missed:.4g}; at most {self.share:.1%} of "
                "the other cells are larger (95 % confidence)"
            )
        columns = ("site", "cell", "estimated", "exact", "")
        return Table(title, columns, rows, right=frozenset({"estimated", "exact"}))

    def spec(self) -> Spec:
        """The figure as plain data: estimated against exact effects, a diagonal if all agree."""
        from nethook.drawing.studies.agreement import agreement

        names = [f"{site} {cell}" for site, cell in zip(self.sites, self.cells, strict=True)]
        return agreement(names, self.exact.numpy(), self.estimated.numpy(), first=self.top)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Estimate(Sweep):
    """The result of `interp.attribute`: a `Sweep` whose values are estimates."""

    study: Study | None = field(default=None)

    def verify(self, top: int = 20, sample: int = 20, *, seed: int = 0) -> Verified:
        """Runs the cells with the largest estimates, and a random sample of the others.

        Arguments:
            top: how many of the largest.
            sample: how many of the others, drawn at random without repetition.
            seed: of the draw.

        Cost: one forward per cell.
        """
        if self.study is None:
            raise OptionError(
                "an estimate that was loaded from a file has no model to run. Call "
                "interp.attribute again."
            )
        for name, count in (("top", top), ("sample", sample)):
            if type(count) is not int or count < 0:
                raise OptionError(f"`{name}` must be a number of cells, 0 or more; got {count!r}.")
        mean = self.mean.flatten()
        there = (~mean.isnan()).nonzero().flatten()
        order = there[mean[there].abs().argsort(descending=True, stable=True)]
        first, rest = order[:top], order[top:]
        drawn = torch.randperm(len(rest), generator=torch.Generator().manual_seed(seed))[:sample]
        chosen = torch.cat([first, rest[drawn]]).tolist()
        pairs = [divmod(flat, len(self.cells)) for flat in chosen]
        exact = torch.tensor([self._measured(*pair) for pair in pairs], dtype=torch.float64)
        estimated = torch.tensor([float(mean[flat]) for flat in chosen], dtype=torch.float64)
        sampled = len(chosen) - len(first)
        unseen = len(rest) - sampled
        return Verified(
            tuple(self.sites[site] for site, _ in pairs),
            tuple(self.cells[cell] for _, cell in pairs),
            len(first),
            estimated,
            exact,
            spearman(estimated.abs(), exact.abs()),
            float(exact[len(first) :].abs().max()) if sampled else math.nan,
            share_above(sampled) if unseen else 0.0,
        )

    def _measured(self, site: int, cell: int) -> float:
        """The exact mean effect of a cell, over the rows that have it."""
        assert self.study is not None
        effect = (self.study.exact(site, cell) - self.base).double()
        return float(effect[~self.values[site, cell].isnan()].mean())


def spearman(one: torch.Tensor, two: torch.Tensor) -> float:
    """The correlation of ranks, ties at their mean rank; NaN where there are fewer than three."""
    if len(one) < 3:
        return math.nan
    ranks = torch.stack([_ranks(one), _ranks(two)])
    return float(torch.corrcoef(ranks)[0, 1])


def _ranks(values: torch.Tensor) -> torch.Tensor:
    below = (values[:, None] > values).sum(1).double()
    ties = (values[:, None] == values).sum(1).double()
    return below + (ties - 1) / 2


def share_above(sampled: int) -> float:
    """With n draws none of which was larger, at most this share is, with 95 % confidence."""
    return 1.0 if not sampled else 1 - (1 - _CONFIDENCE) ** (1 / sampled)
