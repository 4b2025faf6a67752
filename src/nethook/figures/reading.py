"""A run as the plain data of figures; what was read once is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from nethook.drawing.data import Floats, Grid, Integers, Line, Mark
from nethook.drawing.decimate import COLUMNS
from nethook.drawing.quantities import QUANTITIES
from nethook.errors import NoSuchSiteError, OptionError
from nethook.figures.site_order import Order, order_of
from nethook.runs import names
from nethook.runs.reading.losses.shown import ShownLoss, shown_losses
from nethook.runs.reading.results import Histograms, Overview, Rank, Scalar, Series, Snapshot, Units
from nethook.runs.reading.run import Run, open_run
from nethook.text.findings import Finding, read_findings

_PARTS: Final = ("least", "greatest", "last")
_SPARSE: Final = 0.6  # share of columns below which each measurement is marked
_AT_ONCE: Final = 4000  # series whose courses are kept in memory together
_UNITS_READ: Final = 400  # layers whose units are read for one figure


def mark_of(finding: Finding) -> Mark:
    """A finding on an axis of steps."""
    last = None if finding.last_step is None else float(finding.last_step)
    return Mark(
        float(finding.first_step or 0),
        finding.severity,
        finding.code,
        finding.message,
        finding.anchor,
        last,
    )


class Reading:
    """One run, read for figures. Make a new one to see what was written since."""

    def __init__(self, run: Run | str | Path) -> None:
        self.run = run if isinstance(run, Run) else open_run(run)
        self._overviews: dict[tuple[str, str], Overview | None] = {}
        self._histograms: dict[tuple[str, str, str], Histograms] = {}
        self._units: dict[tuple[str, str], Units] = {}
        self._grids: dict[tuple[str, str], Grid | None] = {}
        self._series: dict[tuple[str, str, str], Series] = {}
        self._courses: dict[str, Overview] = {}
        self.samples: dict[str, list[Series]] = {}  # of `coverage`

    @cached_property
    def order(self) -> Order:
        """The sites in order of execution."""
        return order_of(self.run)

    @cached_property
    def catalogue(self) -> dict[tuple[str, str], Any]:
        """Every series there is, by address and quantity."""
        return {(info.address, info.quantity): info for info in self.run.catalogue}

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings, the worst first."""
        return read_findings(self.run.findings, self.run.info.get("tried"))

    @cached_property
    def gaps(self) -> list[Mark]:
        """Where the run had stopped and went on, as marks on an axis of steps."""
        named = {
            event.step: Mark(float(event.step), names.RESUMED, names.RESUMED, event.message)
            for event in reversed(self.run.events)  # of several ranks the first speaks
            if event.kind == names.RESUMED
        }
        return [named[step] for step in sorted(named)]

    @cached_property
    def marks(self) -> list[Mark]:
        """The findings, and the gaps of the run, as marks on an axis of steps."""
        findings = [mark_of(finding) for finding in self.findings if finding.first_step is not None]
        return findings + self.gaps

    @cached_property
    def ranks(self) -> tuple[Rank, ...]:
        """Every rank of the run, with those that are missing."""
        return self.run.ranks

    @cached_property
    def scalars(self) -> Mapping[str, Scalar]:
        """What was logged, by name."""
        return self.run.scalars

    @cached_property
    def losses(self) -> list[ShownLoss]:
        """The losses that are shown."""
        return shown_losses(self.run, scalars=self.scalars)

    @cached_property
    def snapshots(self) -> Mapping[str, tuple[Snapshot, ...]]:
        """Outputs that were kept for a few samples, by site."""
        return self.run.snapshots

    @cached_property
    def last_step(self) -> int:
        """The last step that is in the file."""
        return max((rank.last_step for rank in self.ranks), default=-1)

    def layers(self) -> list[str]:
        """The layers that have outputs, in order of execution; the model itself if it is alone."""
        with_outputs = self.order.sorted(
            address for address, quantity in self.catalogue if quantity == names.OUTPUTS
        )
        return [address for address in with_outputs if address] or with_outputs

    def has(self, address: str, quantity: str) -> bool:
        """Whether there is such a series."""
        return (address, quantity) in self.catalogue

    def series(self, keys: Sequence[tuple[str, str]], phase: str = "train") -> list[Series]:
        """Those of the series that there are, in full. Ask for several at once: it is faster."""
        present = [key for key in keys if key in self.catalogue]
        new = [key for key in present if (*key, phase) not in self._series]
        if new:
            for key, series in zip(new, self.run.many(new, phase), strict=True):
                self._series[(*key, phase)] = series
        return [self._series[(*key, phase)] for key in present]

    def histograms(self, address: str, quantity: str, phase: str = "train") -> Histograms:
        """The distribution of a series over time."""
        key = (address, quantity, phase)
        if key not in self._histograms:
            self._histograms[key] = self.run.histograms(address, quantity, phase)
        return self._histograms[key]

    def units(self, address: str, phase: str = "train") -> Units:
        """Which units of a layer were active."""
        key = (address, phase)
        if key not in self._units:
            self._units[key] = self.run.units(address, names.OUTPUTS, phase)
        return self._units[key]

    # Grids

    def grid(self, name: str, phase: str = "train") -> Grid | None:
        """A quantity of every layer (or parameter) over steps; None where the run has none."""
        if name not in QUANTITIES:
            raise OptionError(f"`quantity` must be one of {', '.join(QUANTITIES)}; got {name!r}.")
        key = (name, phase)
        if key not in self._grids:
            self._grids[key] = _SOURCES[name](self, name, phase)
        return self._grids[key]

    def needed_grid(self, name: str, phase: str = "train") -> Grid:
        """The same, and an error that says what there is where the run has none."""
        grid = self.grid(name, phase)
        if grid is None:
            there = [name for name in QUANTITIES if self.grid(name, phase) is not None]
            raise NoSuchSiteError(
                f"The run has no {name!r} in the phase {phase!r}; it has "
                f"{', '.join(there) or 'nothing to show yet'}."
            )
        return grid

    def grids(self, phase: str = "train") -> dict[str, Grid]:
        """Every quantity that the run has."""
        grids = {name: self.grid(name, phase) for name in QUANTITIES}
        return {name: grid for name, grid in grids.items() if grid is not None}

    def row(self, name: str, address: str) -> Line | None:
        """One row of a grid as a line, or None."""
        grid = self.grid(name)
        if grid is None or address not in grid.rows:
            return None
        row = list(grid.rows).index(address)
        same = grid.least is grid.greatest
        # Where watching was thinned there are gaps: what was measured is joined, and marked.
        there = ~np.isnan(grid.greatest[row])
        return Line(
            address or "(model)",
            grid.last_step[there],
            grid.last[row][there],
            None if same else grid.least[row][there],
            None if same else grid.greatest[row][there],
            markers=bool(there.mean() < _SPARSE),
        )

    def overview(self, quantity: str, phase: str) -> Overview | None:
        """The course of all series of a quantity, or None where there are none."""
        key = (quantity, phase)
        if key not in self._overviews:
            there = any(of == quantity for _, of in self.catalogue)
            grid = self._course(quantity, phase) if there else None
            self._overviews[key] = grid if grid is not None and len(grid) else None
        return self._overviews[key]

    def _course(self, quantity: str, phase: str) -> Overview:
        """Series of all quantities lie together in the file: one reading serves them all."""
        if len(self.catalogue) > _AT_ONCE:
            return self.run.overview(quantity=quantity, phase=phase, points=COLUMNS)
        if phase not in self._courses:
            self._courses[phase] = self.run.overview(phase=phase, points=COLUMNS)
        whole = self._courses[phase]
        places = [column for column, (_, of) in enumerate(whole.keys) if of == quantity]
        keys = tuple(whole.keys[column] for column in places)
        course = whole.course[:, places]
        return Overview(phase, keys, whole.first_step, whole.last_step, course)

    def near(self, keys: Sequence[tuple[str, str]], step: int) -> list[Series]:
        """Those of the series that there are, around one step: a few windows up to it."""
        present = [key for key in keys if key in self.catalogue]
        if not present:
            return []
        # A window is at most a thousandth of the steps before it; a thinned series skips some.
        return self.run.many(present, between=(max(0, int(0.9 * step) - 256), step))


# Where each quantity comes from

_Three = tuple[Floats, Floats, Floats]  # least, greatest, last: (series, points)


def _columns(overview: Overview, column: str) -> _Three:
    least, greatest, last = (
        np.asarray(getattr(overview, field)(column), dtype=np.float64).T for field in _PARTS
    )
    if np.array_equal(least, greatest, equal_nan=True):
        least = greatest  # a window a column: one plane is enough
    return least, greatest, last


def _grid(
    reading: Reading, name: str, keys: Sequence[str], steps: tuple[Integers, Integers], of: _Three
) -> Grid | None:
    """A grid in order of execution, without rows that have nothing in them."""
    least, greatest, last = of
    places = {address: index for index, address in enumerate(keys)}
    there = [bool((~np.isnan(row)).any()) for row in greatest]
    rows = [address for address in reading.order.sorted(keys) if there[places[address]]]
    if len(rows) > 1:
        # The model itself says what its last layer says.
        rows = [address for address in rows if address]
    if not rows or not len(steps[0]):
        return None
    index = [places[address] for address in rows]
    same = least is greatest
    picked = greatest[index]
    return Grid(
        QUANTITIES[name],
        rows,
        *steps,
        picked if same else least[index],
        picked,
        last[index],
    )


def _of(quantity: str, column: str, *, norm: bool = False) -> Callable[..., Grid | None]:
    """A column of a quantity's overview; `norm` makes norms of root mean squares."""

    def read(reading: Reading, name: str, phase: str) -> Grid | None:
        overview = reading.overview(quantity, phase)
        if overview is None:
            return None
        three = _columns(overview, column)
        if norm:
            elements = [max(1, reading.catalogue[key].elements) for key in overview.keys]
            root = np.sqrt(np.array(elements, dtype=np.float64))[:, None]
            three = _same(three, lambda values: values * root)
        keys = [address for address, _ in overview.keys]
        return _grid(reading, name, keys, (overview.first_step, overview.last_step), three)

    return read


def _same(three: _Three, change: Callable[[Floats], Floats]) -> _Three:
    """A change of all three parts that keeps one array one array."""
    least, greatest, last = three
    made = change(greatest)
    return (made if least is greatest else change(least)), made, change(last)


def _updates(reading: Reading, name: str, phase: str) -> Grid | None:
    """Updates by weights. Where a column is several windows, bounds that hold for each of them."""
    updates = reading.overview(names.UPDATES, phase)
    params = reading.overview(names.PARAMS, phase)
    if updates is None or params is None or len(updates) != len(params):
        return None
    places = {address: index for index, (address, _) in enumerate(params.keys)}
    keys = [address for address, _ in updates.keys if address in places]
    mine = [index for index, (address, _) in enumerate(updates.keys) if address in places]
    theirs = [places[address] for address in keys]
    u, p = _columns(updates, "rms"), _columns(params, "rms")
    with np.errstate(divide="ignore", invalid="ignore"):
        last = u[2][mine] / p[2][theirs]
        greatest = u[1][mine] / p[0][theirs]
        same = u[0] is u[1] and p[0] is p[1]
        least = greatest if same else u[0][mine] / p[1][theirs]
    for values in (least, greatest, last):
        values[np.isinf(values)] = np.nan  # a parameter that is all zeros has no ratio
    steps = (updates.first_step, updates.last_step)
    return _grid(reading, name, keys, steps, (least, greatest, last))


def _nonfinite(reading: Reading, name: str, phase: str) -> Grid | None:
    """The larger share of the two: outputs, and their gradients."""
    outputs = _of(names.OUTPUTS, "nonfinite")(reading, name, phase)
    grads = _of(names.GRADS, "nonfinite")(reading, name, phase)
    if outputs is None or grads is None or outputs.greatest.shape[1] != grads.greatest.shape[1]:
        return outputs
    places = {address: index for index, address in enumerate(grads.rows)}
    parts = []
    for mine, theirs in ((getattr(outputs, field), getattr(grads, field)) for field in _PARTS):
        made = mine.copy()
        for index, address in enumerate(outputs.rows):
            if address in places:
                made[index] = np.fmax(mine[index], theirs[places[address]])
        parts.append(made)
    steps = (outputs.first_step, outputs.last_step)
    if np.array_equal(parts[0], parts[1], equal_nan=True):
        parts[0] = parts[1]
    return Grid(outputs.quantity, outputs.rows, *steps, parts[0], parts[1], parts[2])


def _silent(reading: Reading, name: str, phase: str) -> Grid | None:
    """Silent units of rectifiers; of all layers with units where none says that it is one."""
    with_units = [
        address
        for (address, quantity), info in reading.catalogue.items()
        if quantity == names.OUTPUTS and info.units
    ]
    told = [reading.order.info(address).get("activation") for address in with_units]
    if any(told):
        with_units = [
            address for address, kind in zip(with_units, told, strict=True) if kind == "rectifier"
        ]
    rows = [address for address in reading.order.sorted(with_units) if address][:_UNITS_READ]
    parts = [reading.units(address, phase) for address in rows]
    if not parts or not len(parts[0]):
        return None
    shares = np.stack([units.dead_share for units in parts])
    first, last = parts[0].first_step, parts[0].last_step
    return Grid(QUANTITIES[name], rows, first, last, shares, shares, shares)


_SOURCES: Final[dict[str, Callable[..., Grid | None]]] = {
    "gradients": _of(names.PARAM_GRADS, "rms", norm=True),
    "output_gradients": _of(names.GRADS, "rms", norm=True),
    "updates": _updates,
    "silent": _silent,
    "ends": _of(names.OUTPUTS, "near"),
    "spread": _of(names.OUTPUTS, "std"),
    "mean": _of(names.OUTPUTS, "mean"),
    "zeros": _of(names.OUTPUTS, "zeros"),
    "nonfinite": _nonfinite,
    "weights": _of(names.PARAMS, "rms"),
}
