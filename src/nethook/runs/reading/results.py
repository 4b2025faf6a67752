"""What a run gives back: columns of numbers, each with the steps that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from nethook.errors import NoSuchSiteError, OptionError
from nethook.runs.format.levels import SHOWN, Course, shown_numbers
from nethook.runs.format.points import BUCKET
from nethook.runs.reading.frames import make_frame
from nethook.stats.fields import FIELDS, INDEX, Matrix, bin_values, finite_counts, reduce_rows

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Series:
    """One quantity of one site over the run: one row per window.

        series = run.series("conv1", "outputs")
        series.last_step, series["std"], series.coverage

    `series[name]` is a column: a field of a summary (`nethook.stats.fields`), or `std`, `rms`,
    `zero_share`, `nonfinite_share`, `near_share`; NaN where nothing was measured.

    A number is exact where `seen == steps`. Of a run with several ranks, both are counted over the
    ranks, so that a missing rank shows as coverage below 1.
    """

    address: str
    quantity: str
    phase: str
    first_step: Integers
    last_step: Integers
    steps: Integers
    seen: Integers
    closed: npt.NDArray[np.bool_]
    rows: Matrix  # (windows, FIELDS)
    counted: int = 1  # ranks, or parts of a tensor, that each step is counted for in `steps`

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, name: str) -> Floats:
        if name in ("mean", "min", "max"):
            return np.where(finite_counts(self.rows) > 0, self.rows[:, INDEX[name]], np.nan)
        if name in INDEX:
            column: Floats = self.rows[:, INDEX[name]]
            return column
        if name in ("std", "rms"):
            return self._shown(name)
        if name in ("zero_share", "nonfinite_share", "near_share"):
            return self._shown({"zero_share": "zeros"}.get(name, name.removesuffix("_share")))
        columns = [*FIELDS, "std", "rms", "zero_share", "nonfinite_share", "near_share"]
        raise NoSuchSiteError(f"a series has no column {name!r}; it has {', '.join(columns)}.")

    def _shown(self, name: str) -> Floats:
        column: Floats = shown_numbers(self.rows)[:, SHOWN.index(name)]
        return column

    @property
    def coverage(self) -> Floats:
        """The share of each window's steps that was measured: 1 is exact."""
        return self.seen / np.maximum(self.steps, 1)

    def total(self) -> dict[str, float]:
        """The summary of the whole run, field by field."""
        row = reduce_rows(self.rows)
        return dict(zip(FIELDS, row.tolist(), strict=True))

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All columns by name."""
        more = ("std", "rms", "zero_share", "nonfinite_share", "near_share")
        fields = [name for name in FIELDS if name != "mean_low"]  # of no use by itself
        return {
            "first_step": self.first_step,
            "last_step": self.last_step,
            "steps": self.steps,
            "seen": self.seen,
            "coverage": self.coverage,
            "closed": self.closed,
            **{name: self[name] for name in (*fields, *more)},
        }

    def frame(self, library: str | None = None) -> Any:
        """A data frame of pandas or polars, whichever is installed, or the one that is named."""
        return make_frame(self.columns(), library)

    def __repr__(self) -> str:
        what = f"{self.address!r} {self.quantity}, {self.phase}"
        if not len(self):
            return f"<Series {what}: no windows>"
        mean, std = self["mean"][-1], self["std"][-1]
        covered = self.seen.sum() / max(1, self.steps.sum())
        return (
            f"<Series {what}: {len(self):,} windows, steps {self.first_step[0]:,} to "
            f"{self.last_step[-1]:,}, {covered:.0%} measured, last mean {mean:.4g}, std {std:.4g}>"
        )


@dataclass(frozen=True, repr=False, eq=False)
class Histograms:
    """The distribution of one series over the run: one row of counts per span of steps.

    `values` has the number that stands for each bin, within 9 % of each of its elements.
    """

    address: str
    quantity: str
    phase: str
    first_step: Integers
    last_step: Integers
    counts: Integers  # (spans, bins)
    values: Floats = field(default_factory=bin_values)

    def __len__(self) -> int:
        return len(self.first_step)

    def quantiles(self, q: float | Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> Floats:
        """Quantiles within 9 %: (spans, quantiles); NaN where nothing is."""
        wanted = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if wanted.size == 0 or not ((wanted >= 0) & (wanted <= 1)).all():
            raise OptionError(f"`q` must be one or more numbers between 0 and 1; got {q!r}.")
        running = np.cumsum(self.counts, axis=1)
        quantiles = np.full((len(self), wanted.size), np.nan)
        for span, line in enumerate(running):
            if line[-1] > 0:
                # The element with this rank, as numpy's method="inverted_cdf" has it.
                ranks = np.maximum(1, np.ceil(wanted * line[-1]))
                quantiles[span] = self.values[np.searchsorted(line, ranks)]
        return quantiles

    def frame(self, library: str | None = None) -> Any:
        """A data frame with one line for each bin that has a count."""
        spans, bins = np.nonzero(self.counts)
        return make_frame(
            {
                "first_step": self.first_step[spans],
                "last_step": self.last_step[spans],
                "value": self.values[bins],
                "count": self.counts[spans, bins],
            },
            library,
        )

    def __repr__(self) -> str:
        what = f"{self.address!r} {self.quantity}, {self.phase}"
        return f"<Histograms {what}: {len(self):,} spans, {self.counts.sum():,} elements>"


@dataclass(frozen=True, repr=False, eq=False)
class Units:
    """Which units of a site were ever active, span by span.

    `measured` is False for spans in which the site was not looked at: its units may be anything.
    """

    address: str
    quantity: str
    phase: str
    first_step: Integers
    last_step: Integers
    active: npt.NDArray[np.bool_]  # (spans, units)
    measured: npt.NDArray[np.bool_]  # (spans,)

    @property
    def dead_share(self) -> Floats:
        """The share of units that were dead over each whole span; NaN where none was measured."""
        if not self.active.size:
            return np.zeros(0)
        return np.where(self.measured, 1.0 - self.active.mean(axis=1), np.nan)

    def __len__(self) -> int:
        return len(self.first_step)

    def __repr__(self) -> str:
        what = f"{self.address!r} {self.quantity}, {self.phase}"
        return f"<Units {what}: {len(self):,} spans, {self.active.shape[-1]:,} units>"


@dataclass(frozen=True, repr=False, eq=False)
class Overview:
    """The course of many series in few points: least, greatest and last value of each.

        overview = run.overview(quantity="grads")
        overview.last("rms")        # (points, series)

    The least and greatest of all windows between two points are in it: no spike is lost.
    """

    phase: str
    keys: tuple[tuple[str, str], ...]  # (address, quantity) of each series
    first_step: Integers
    last_step: Integers
    course: Course  # (points, series, 3, SHOWN)

    def least(self, name: str) -> Floats:
        """The least value of each point: (points, series)."""
        return self._column(0, name)

    def greatest(self, name: str) -> Floats:
        """The greatest value of each point: (points, series)."""
        return self._column(1, name)

    def last(self, name: str) -> Floats:
        """The last value of each point: (points, series)."""
        return self._column(2, name)

    def _column(self, which: int, name: str) -> Floats:
        if name not in SHOWN:
            raise NoSuchSiteError(f"an overview has no {name!r}; it has {', '.join(SHOWN)}.")
        column: Floats = self.course[:, :, which, SHOWN.index(name)]
        return column

    def __len__(self) -> int:
        return len(self.first_step)

    def __repr__(self) -> str:
        return f"<Overview {self.phase}: {len(self):,} points of {len(self.keys):,} series>"


@dataclass(frozen=True, repr=False, eq=False)
class Buckets:
    """What is left of points that are no longer kept one by one: one row per 64 of them.

    `min`, `max` and `mean` are over values that are finite, `first` is the first of them. The last
    four columns are sums; of anything but losses they say nothing.
    """

    first_step: Integers
    last_step: Integers
    points: Integers
    min: Floats
    max: Floats
    mean: Floats
    first: Floats
    samples: Floats
    batches: Floats
    sum: Floats
    batch_sum: Floats

    def __len__(self) -> int:
        return len(self.first_step)

    def between(self, first: int, last: int) -> Buckets:
        """Those that lie within the steps `first` to `last`."""
        kept = (self.first_step >= first) & (self.last_step <= last)
        return Buckets(*(getattr(self, column.name)[kept] for column in fields(self)))

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All columns by name."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    def frame(self, library: str | None = None) -> Any:
        """A data frame of pandas or polars, whichever is installed, or the one that is named."""
        return make_frame(self.columns(), library)

    def __repr__(self) -> str:
        if not len(self):
            return "<Buckets: none>"
        steps = f"steps {self.first_step[0]:,} to {self.last_step[-1]:,}"
        return f"<Buckets: {len(self):,}, {steps}>"


def buckets_from(table: Matrix) -> Buckets:
    """The buckets of a table as a file has it: see `BUCKET` of `runs.format.points`."""
    column = dict(zip(BUCKET, table.T, strict=True))
    whole = {name: column.pop(name).astype(np.int64) for name in ("step", "first_step", "points")}
    return Buckets(
        whole["first_step"], whole["step"], whole["points"],
        *(column[entry.name] for entry in fields(Buckets)[3:]),
    )  # fmt: skip


@dataclass(frozen=True, repr=False, eq=False)
class Scalar:
    """The points of a value that was logged; `older` has what is no longer kept one by one."""

    name: str
    step: Integers
    time: Floats
    value: Floats
    older: Buckets | None = None

    def __len__(self) -> int:
        return len(self.step)

    def frame(self, library: str | None = None) -> Any:
        """A data frame of pandas or polars, whichever is installed, or the one that is named."""
        return make_frame({"step": self.step, "time": self.time, "value": self.value}, library)

    def __repr__(self) -> str:
        last = f", last {self.value[-1]:.6g} at step {self.step[-1]:,}" if len(self) else ""
        return f"<Scalar {self.name!r}: {len(self):,} points{last}>"


@dataclass(frozen=True)
class EventRecord:
    """Something that happened; `repeats` more of its kind followed that were not kept."""

    step: int
    time: float
    kind: str
    address: str
    message: str
    data: dict[str, Any]
    repeats: int
    rank: int


class Findings(tuple[dict[str, Any], ...]):
    """Findings as plain data: a tuple of mappings that a notebook shows as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from nethook.runs.reading.show import findings_table

        return findings_table(self).html()

    def __str__(self) -> str:
        from nethook.runs.reading.show import findings_table

        return findings_table(self).text()


@dataclass(frozen=True)
class Loss:
    """How a loss was made, at one step."""

    name: str
    step: int
    phase: str
    data: dict[str, Any]
    rank: int


@dataclass(frozen=True)
class Snapshot:
    """What a site returned for a few samples at one step: `values` is (samples, …) of float32."""

    address: str
    step: int
    values: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Rank:
    """One rank of a run: its file, how far it came, and its state.

    The state is `finished`, `open` (it is being written), `died` (it was cut off), `missing` (there
    is no file) or `unreadable` (and `problem` says why).
    """

    rank: int
    path: str
    state: str
    last_step: int
    problem: str = ""
