"""A loss as it went: every value that is kept, and its means over samples and over batches.

A step has one batch, or several micro-batches; an evaluation pass has many. The mean over samples
counts each sample once, so a last batch that is smaller counts less: it is what a loop computes by
`total += loss.item() * len(batch)` and a division at the end. The mean over batches counts each
batch once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from nethook.errors import NoSuchSiteError
from nethook.runs import names
from nethook.runs.format.packing import Matrix
from nethook.runs.format.points import LOSS, as_losses
from nethook.runs.reading.frames import make_frame
from nethook.runs.reading.rank_file import SeriesInfo
from nethook.runs.reading.results import Buckets, Floats, Integers, Scalar, Series

OVER_SAMPLES: Final = "mean over samples"
OVER_BATCHES: Final = "mean over batches"


@dataclass(frozen=True, repr=False, eq=False)
class LossCurve(Scalar):
    """A loss, one point per training step or per evaluation pass.

        loss = run.loss("train.py:42")
        loss.step, loss.shown                       # every step: the mean over its samples
        loss.mean, loss.batch_mean                  # of the whole run
        loss.between(1000, 1999).mean               # of some steps
        run.loss("train.py:57", phase="eval").shown[-1]   # the last evaluation

    `value` is what the step's backward passes ran on: the loss; the sum of its micro-batches where
    the script divides each by their number (`divided` is that number), and their mean where it does
    not (`divided` is 0). `shown` is its mean over samples, which differs from it where the loss is
    a sum, or where micro-batches differ in size.
    """

    loss: str = ""
    phase: str = "train"
    samples: Floats | None = None  # NaN where their number is not known
    batches: Floats | None = None
    divided: Floats | None = None
    sum: Floats | None = None  # over samples
    batch_sum: Floats | None = None  # over batches

    @property
    def shown(self) -> Floats:
        """The mean of each point: over samples, or over batches where samples are not known."""
        return _shown(*(self._of(name) for name in ("samples", "batches", "sum", "batch_sum")))

    @property
    def mean(self) -> float:
        """The mean over all samples; over batches where `counted` says so."""
        if self.counted == OVER_BATCHES:
            return self.batch_mean
        return _ratio(self._total("sum"), self._total("samples"))

    @property
    def batch_mean(self) -> float:
        """The mean over all batches."""
        return _ratio(self._total("batch_sum"), self._total("batches"))

    @property
    def counted(self) -> str:
        """What `mean` is: `mean over samples`, or `mean over batches`."""
        known = np.isfinite(self._total("samples"))
        return OVER_SAMPLES if known else OVER_BATCHES

    @property
    def shown_as(self) -> str:
        """What the last of `shown` is: `mean over samples`, or `mean over batches`."""
        samples = self._of("samples")
        return OVER_SAMPLES if len(samples) and np.isfinite(samples[-1]) else OVER_BATCHES

    @property
    def first(self) -> float:
        """The first value of the run, as it is shown."""
        if self.older is not None and len(self.older):
            return float(self.older.first[0] * _by_value(self.older)[0])
        return float(self.shown[0]) if len(self) else float("nan")

    @property
    def last(self) -> float:
        """The last value of the run, as it is shown."""
        return float(self.shown[-1]) if len(self) else float("nan")

    def between(self, first: int, last: int) -> LossCurve:
        """The points of the steps `first` to `last`; of older ones the buckets that lie within."""
        kept = (self.step >= first) & (self.step <= last)
        older = None if self.older is None else self.older.between(first, last)
        columns = {name: self._of(name)[kept] for name in LOSS[3:]}
        return LossCurve(
            self.name, self.step[kept], self.time[kept], self.value[kept], older, self.loss,
            self.phase, **columns,
        )  # fmt: skip

    def course(self) -> tuple[Integers, Floats, Floats, Floats]:
        """All of it for a chart: the last step of each point or bucket, mean, min and max."""
        shown = self.shown
        older = self.older
        if older is None or not len(older):
            return self.step, shown, shown, shown
        by = _by_value(older)
        parts = [older.mean, older.min, older.max]
        joined = [np.concatenate((part * by, shown)) for part in parts]
        return np.concatenate((older.last_step, self.step)), joined[0], joined[1], joined[2]

    def columns(self) -> dict[str, Any]:
        """All columns by name."""
        return {
            "step": self.step, "time": self.time, "value": self.value, "shown": self.shown,
            **{name: self._of(name) for name in LOSS[3:]},
        }  # fmt: skip

    def frame(self, library: str | None = None) -> Any:
        """A data frame of pandas or polars, whichever is installed, or the one that is named."""
        return make_frame(self.columns(), library)

    def _of(self, name: str) -> Floats:
        column: Floats | None = getattr(self, name)
        return np.full(len(self.step), np.nan) if column is None else column

    def _total(self, name: str) -> float:
        total = float(self._of(name).sum())
        if self.older is not None:
            total += float(getattr(self.older, name).sum())
        return total

    def __repr__(self) -> str:
        what = f"{self.loss!r}, {self.phase}: {len(self):,} points"
        if self.older is not None and len(self.older):
            what += f" and {len(self.older):,} buckets of older ones"
        if not len(self):
            return f"<LossCurve {what}>"
        return (
            f"<LossCurve {what}, {self.first:.6g} → {self.last:.6g} at step {self.step[-1]:,} "
            f"({self.shown_as})>"
        )


def curve_of(scalar: str, loss: str, phase: str, ranks: Sequence[Matrix], older: Any) -> LossCurve:
    """A loss from the points of each rank that has it."""
    tables = [as_losses(points) for points in ranks]
    table = tables[0] if len(tables) == 1 else _together(tables)
    more = dict(zip(LOSS[3:], table[:, 3:].T, strict=True))
    step = table[:, 0].astype(np.int64)
    return LossCurve(scalar, step, table[:, 1], table[:, 2], older, loss, phase, **more)


def _together(ranks: Sequence[Matrix]) -> Matrix:
    """The mean of each step over the ranks that have it, and the sum of what they have counted."""
    every = np.concatenate(ranks)
    steps, where = np.unique(every[:, 0], return_inverse=True)
    count = np.bincount(where)
    time = np.full(len(steps), np.inf)
    np.minimum.at(time, where, every[:, 1])
    means = [np.bincount(where, weights=every[:, column]) / count for column in (2, 5)]
    sums = [np.bincount(where, weights=every[:, column]) for column in (3, 4, 6, 7)]
    return np.column_stack([steps, time, means[0], *sums[:2], means[1], *sums[2:]])


def curve_of_series(scalar: str, loss: str, phase: str, series: Series) -> LossCurve:
    """A loss of which a file has windows alone: of what is older than this version."""
    there = series.seen > 0
    mean, count = series["mean"][there], series["count"][there]
    mean = np.where(series["nonfinite_share"][there] > 0, np.nan, mean)
    step = series.last_step[there]
    nothing = np.full(len(step), np.nan)
    return LossCurve(
        scalar, step, nothing, mean, None, loss, phase, nothing, count, np.zeros(len(step)),
        nothing, mean * count,
    )  # fmt: skip


class HasSeries(Protocol):
    """A run, as far as its series go."""

    @property
    def catalogue(self) -> tuple[SeriesInfo, ...]:
        """Every series there is."""

    def many(self, keys: Sequence[tuple[str, str]], phase: str = "train") -> list[Series]:
        """Several series in one go."""


def curves_of(run: HasSeries, scalars: Mapping[str, Scalar], phase: str) -> dict[str, LossCurve]:
    """Every loss of a phase, by name."""
    curves = {
        curve.loss: curve
        for curve in scalars.values()
        if isinstance(curve, LossCurve) and curve.phase == phase and len(curve)
    }
    # Runs of older versions have windows of evaluations, and no points.
    prefix = names.loss_address("")
    losses = [
        info.address.removeprefix(prefix)
        for info in run.catalogue
        if info.quantity == names.LOSS and info.address.startswith(prefix)
    ]
    missing = [loss for loss in losses if loss not in curves]
    keys = [(names.loss_address(loss), names.LOSS) for loss in missing]
    for loss, series in zip(missing, run.many(keys, phase) if keys else (), strict=True):
        curve = curve_of_series(names.loss_name(loss, phase), loss, phase, series)
        if len(curve):
            curves[loss] = curve
    return curves


def chosen_loss(curves: Mapping[str, LossCurve], name: str | None, phase: str) -> LossCurve:
    """The loss of a name, or the only one."""
    if name is None and len(curves) == 1:
        return next(iter(curves.values()))
    if name is not None and name in curves:
        return curves[name]
    has = f"it has {', '.join(map(repr, curves))}." if curves else "it has none."
    what = "has several losses" if name is None and curves else f"has no loss {name!r}"
    raise NoSuchSiteError(f"in the phase {phase!r} the run {what}; {has}")


def merged_buckets(ranks: Sequence[Buckets]) -> Buckets | None:
    """The buckets of all ranks, where they have the same; else those of the lowest rank."""
    if not ranks:
        return None
    first = ranks[0]
    alike = all(
        np.array_equal(first.first_step, other.first_step)
        and np.array_equal(first.last_step, other.last_step)
        for other in ranks
    )
    if len(ranks) == 1 or not alike:
        return first

    def each(name: str) -> Matrix:
        return np.stack([getattr(rank, name) for rank in ranks])

    return Buckets(
        first.first_step, first.last_step, first.points, each("min").min(0), each("max").max(0),
        each("mean").mean(0), each("first").mean(0), each("samples").sum(0),
        each("batches").sum(0), each("sum").sum(0), each("batch_sum").sum(0),
    )  # fmt: skip


def _shown(samples: Floats, batches: Floats, total: Floats, batch_total: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isfinite(samples), total / samples, batch_total / batches)


def _by_value(older: Buckets) -> Floats:
    """What is shown by `value`, of which a bucket has mean, min and max: of a sum, 1 by samples."""
    shown = _shown(older.samples, older.batches, older.sum, older.batch_sum)
    with np.errstate(invalid="ignore", divide="ignore"):
        by = shown / older.mean
    # A mean over samples and one over steps differ by a little: that is no factor.
    return np.where(np.isfinite(by) & (by > 0) & ((by < 0.5) | (by > 2)), by, 1.0)


def _ratio(total: float, count: float) -> float:
    return total / count if count else float("nan")
