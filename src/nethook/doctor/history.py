"""A run as the rules see it: a narrow interface of documented fields.

    history = History(nethook.open_run("runs/mnist.db"))
    history.loop("old_gradients")                      # a curve: steps and values
    history.curve("fc1", "outputs", "std")
    history.modules[0].fact("modes"), history.records("train")[0].fact("chain")

Every field is explained in docs/run-file.md. What a rule reads is noted in `history.read`, so that
a test can hold each rule to the fields that it names. A field that the file lacks is `None` or an
empty curve: an older run, a thinned one, or one that was cut off, does not make a rule fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from nethook.doctor.signals.quantiles import median
from nethook.runs.names import (
    BATCH,
    LOOP,
    LOSS,
    OUTPUTS,
    PARAMS_FINGERPRINT,
    is_own_scalar,
    loss_address,
)
from nethook.runs.reading.losses.curve import LossCurve
from nethook.runs.reading.results import EventRecord, Series
from nethook.runs.reading.run import Run

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_Made = TypeVar("_Made")

NEAR: Final = 4096
"""Steps of a loss that are looked at one by one: the last ones."""
AT_ONCE: Final = 1 << 16
"""Up to so many rows of numbers, some MB, the series of all sites are read at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A number over the run: one value per window in which it was measured."""

    step: Integers  # the last step of each window
    value: Floats
    steps: Integers  # steps in each window

    def __len__(self) -> int:
        return len(self.step)

    def since(self, step: int) -> Curve:
        """The part from a step on."""
        return self.where(self.step >= step)

    def until(self, step: int) -> Curve:
        """The part up to and with a step."""
        return self.where(self.step <= step)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Curve:
        """The windows that were chosen."""
        return Curve(self.step[chosen], self.value[chosen], self.steps[chosen])

    @property
    def total(self) -> float:
        """The sum over all steps."""
        return float((self.value * self.steps).sum()) if len(self) else 0.0


NOTHING = Curve(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))


class Noted:
    """Facts in a mapping; what is asked for is noted."""

    __slots__ = ("_facts", "_prefix", "_read")

    def __init__(self, facts: Mapping[str, Any], prefix: str, read: set[str]) -> None:
        self._facts = facts
        self._prefix = prefix
        self._read = read

    def fact(self, name: str, default: Any = None) -> Any:
        """A fact; the default where the file has none."""
        self._read.add(f"{self._prefix}.{name}")
        value = self._facts.get(name)
        return default if value is None else value


class SiteFacts(Noted):
    """A module or parameter of the model."""

    __slots__ = ("address", "kind")

    def __init__(
        self, address: str, kind: str, facts: Mapping[str, Any], prefix: str, read: set[str]
    ) -> None:
        super().__init__(facts, prefix, read)
        self.address = address
        self.kind = kind


class LossFacts(Noted):
    """How a loss was made, at one step."""

    __slots__ = ("name", "phase", "step")

    def __init__(
        self, name: str, step: int, phase: str, facts: Mapping[str, Any], read: set[str]
    ) -> None:
        super().__init__(facts, "loss", read)
        self.name = name
        self.step = step
        self.phase = phase


class Examined(Noted):
    """What came of one experiment on a copy, at one step."""

    __slots__ = ("experiment", "loss", "model", "outcome", "reason", "step")

    def __init__(self, data: Mapping[str, Any], read: set[str]) -> None:
        facts, step = data.get("facts"), data.get("step")
        self.experiment = str(data.get("experiment", ""))
        super().__init__(
            facts if isinstance(facts, Mapping) else {}, f"examined.{self.experiment}", read
        )
        self.outcome = str(data.get("outcome", "failed"))
        """`fine`, `found`, `question`, `not applicable` or `failed`."""
        self.reason = str(data.get("reason", ""))
        self.step = step if isinstance(step, int) else 0
        self.model = str(data.get("model", ""))
        self.loss = str(data.get("loss", ""))
        """The line that called `backward`, as losses are named."""


class History:
    """What rules may know of a run.

    Arguments:
        run: what `open_run` returned.
        until: curves, records and events end with this step, as if the run had gone no further;
            facts about sites are those of the whole run.
    """

    def __init__(self, run: Run, until: int | None = None) -> None:
        self._run = run
        self._until = until
        self._series: dict[tuple[str, str, str], Series] = {}
        self.read: set[str] = set()
        self._made: dict[str, tuple[Any, frozenset[str]]] = {}

    # -- what there is ------------------------------------------------------------------------

    @cached_property
    def steps(self) -> int:
        """Training steps so far."""
        curve = self.loop("forwards")
        ends = [int(curve.step[-1]) + 1] if len(curve) else []
        return max([*ends, *(int(loss.step[-1]) + 1 for loss in self.losses() if len(loss))] or [0])

    @cached_property
    def first_step(self) -> int:
        """The first training step that was recorded."""
        curve = self.loop("forwards")
        starts = [int(curve.step[0] - curve.steps[0] + 1)] if len(curve) else []
        return max(0, min([*starts, *(int(loss.step[0]) for loss in self.losses())] or [0]))

    def info(self, name: str, default: Any = None) -> Any:
        """A fact about the run as a whole."""
        self.read.add(f"info.{name}")
        value = self._info.get(name)
        return default if value is None else value

    @cached_property
    def _info(self) -> Mapping[str, Any]:
        return self._run.info

    @cached_property
    def modules(self) -> tuple[SiteFacts, ...]:
        """Every module, in the order of the model."""
        return tuple(
            SiteFacts(site.address, site.kind, site.info, "module", self.read)
            for site in self._run.sites
            if site.kind != "Parameter"
        )

    @cached_property
    def parameters(self) -> tuple[SiteFacts, ...]:
        """Every parameter, in the order of the model."""
        return tuple(
            SiteFacts(site.address, site.kind, site.info, "parameter", self.read)
            for site in self._run.sites
            if site.kind == "Parameter"
        )

    def events(self, kind: str) -> tuple[EventRecord, ...]:
        """What happened, of one kind, in the order of steps."""
        self.read.add(f"event.{kind}")
        return tuple(event for event in self._events if event.kind == kind)

    def examined(self, experiment: str | None = None) -> tuple[Examined, ...]:
        """What came of an experiment, or of all: one result per loss that was examined.

        Empty where nothing was examined; `info("examination")` has the reasons.
        """
        self.read.add("info.examined" if experiment is None else f"examined.{experiment}")
        stored = self._info.get("examined")
        results = [
            Examined(data, self.read)
            for data in (stored if isinstance(stored, list | tuple) else ())
            if isinstance(data, Mapping)
        ]
        return tuple(
            result
            for result in results
            if experiment in (None, result.experiment) and self._is_within(result.step)
        )

    def _is_within(self, step: int) -> bool:
        return self._until is None or step <= self._until

    def _cut(self, curve: Curve) -> Curve:
        return curve if self._until is None else curve.until(self._until)

    @cached_property
    def _events(self) -> tuple[EventRecord, ...]:
        return tuple(event for event in self._run.events if self._is_within(event.step))

    def fingerprints(self) -> dict[str, dict[int, Curve]]:
        """Of every rank, numbers that equal parameters share, at steps 0, 1, 2, 4, 8.

        Parameters that all ranks have whole are one group, and each part of those that are spread
        is one: only ranks that hold the same part are to agree.
        """
        self.read.add(f"scalar.{PARAMS_FINGERPRINT}")
        return {
            name: {
                rank: Curve(scalar.step, scalar.value, np.ones(len(scalar), np.int64))
                for rank, scalar in of_ranks.items()
            }
            for name, of_ranks in self._run.scalars_by_rank(PARAMS_FINGERPRINT).items()
            if name.split(":", 1)[0] == PARAMS_FINGERPRINT
        }

    def records(self, phase: str = "train", name: str | None = None) -> tuple[LossFacts, ...]:
        """How losses were made, in the order of steps."""
        return tuple(
            LossFacts(loss.name, loss.step, loss.phase, loss.data, self.read)
            for loss in self._losses
            if loss.phase == phase and name in (None, loss.name)
        )

    @cached_property
    def _losses(self) -> tuple[Any, ...]:
        return tuple(loss for loss in self._run.losses if self._is_within(loss.step))

    # -- numbers ------------------------------------------------------------------------------

    def has(self, address: str, quantity: str) -> bool:
        """Whether a quantity of a site was recorded."""
        return (address, quantity) in self._catalogue

    @cached_property
    def _catalogue(self) -> set[tuple[str, str]]:
        return {(series.address, series.quantity) for series in self._run.catalogue}

    def series_fact(self, address: str, quantity: str, name: str, default: Any = None) -> Any:
        """A fact about a series as a whole: the type of an input."""
        self.read.add(f"series.{_shown(address, quantity)}.info.{name}")
        for info in self._run.catalogue:
            if (info.address, info.quantity) == (address, quantity):
                return info.info.get(name, default)
        return default

    def curve(
        self, address: str, quantity: str, column: str = "mean", phase: str = "train"
    ) -> Curve:
        """A column of a series, in the windows in which it was measured."""
        self.read.add(f"series.{_shown(address, quantity)}.{column}")
        series = self._read_series(address, quantity, phase)
        if series is None:
            return NOTHING
        value = np.asarray(series[column], dtype=np.float64)
        measured = (series.seen > 0) & ~np.isnan(value)
        steps = series.steps // series.counted
        return self._cut(Curve(series.last_step, value, steps).where(measured))

    def active_units(self, address: str, since: int) -> npt.NDArray[np.bool_] | None:
        """Of each unit, whether it was ever active from a step on; None where no bits were kept."""
        self.read.add("units.outputs")
        if not self.has(address, OUTPUTS):
            return None
        units = self._run.units(address, OUTPUTS)
        late = (units.last_step >= since) & (units.last_step <= (self._until or np.inf))
        if not units.active.size or not late.any():
            return None
        active: npt.NDArray[np.bool_] = np.any(units.active[late], axis=0)
        return active

    def once(self, name: str, make: Callable[[History], _Made]) -> _Made:
        """What `make` makes of the run, once: for the first rule that asks, and for all others."""
        if name not in self._made:
            before = set(self.read)
            self.read.clear()
            try:
                self._made[name] = make(self), frozenset(self.read)
            finally:
                self.read |= before
        made, fields = self._made[name]
        self.read |= fields
        return made  # type: ignore[no-any-return]

    def loop(self, quantity: str, column: str = "mean") -> Curve:
        """A number of the loop: one value per step, or the mean over a window."""
        return self.curve(LOOP, quantity, column)

    def batch(self, quantity: str, column: str = "mean") -> Curve:
        """A number of the batches."""
        return self.curve(BATCH, quantity, column)

    def losses(self, phase: str = "train") -> tuple[Curve, ...]:
        """The curve of every loss that was recorded in a phase."""
        return tuple(curve for _, curve in self.named_losses(phase))

    def named_losses(self, phase: str = "train") -> Iterator[tuple[str, Curve]]:
        """The name and curve of every loss that was recorded in a phase."""
        for address in self._loss_addresses:
            curve = self._loss_curve(address, phase)
            if len(curve):
                yield address.removeprefix(loss_address("")), curve

    def _loss_curve(self, address: str, phase: str) -> Curve:
        """A loss step by step for the last `NEAR` of them, and window by window before.

        Under a budget windows merge, and a curve of few of them would hide what happened when. A
        window is NaN where the loss was not finite in any of its steps.
        """
        self.read.add(f"series.{_shown(address, LOSS)}.mean")
        series = self._read_series(address, LOSS, phase)
        if series is None:
            return NOTHING
        value = np.where(series["nonfinite_share"] > 0, np.nan, series["mean"])
        steps = series.steps // series.counted
        windows = self._cut(Curve(series.last_step, value, steps).where(series.seen > 0))
        points = self._loss_points.get((address.removeprefix(loss_address("")), phase))
        if points is None or not len(points):
            return windows
        step, shown = points.step[-NEAR:], points.shown[-NEAR:]
        before = windows.until(int(step[0]) - 1)
        # Windows have what each backward pass ran on: a sum, or the part of a divided loss.
        scale = _by_pass(points)
        if len(before) and len(step) <= len(windows):
            return Curve(windows.step, windows.value * scale, windows.steps)
        value = np.concatenate((before.value * scale, np.where(np.isfinite(shown), shown, np.nan)))
        steps = np.concatenate((before.steps, np.ones(len(step), np.int64)))
        return self._cut(Curve(np.concatenate((before.step, step)), value, steps))

    @cached_property
    def _loss_points(self) -> dict[tuple[str, str], LossCurve]:
        curves = [scalar for scalar in self._scalars.values() if isinstance(scalar, LossCurve)]
        return {(curve.loss, curve.phase): curve for curve in curves}

    @cached_property
    def _loss_addresses(self) -> list[str]:
        # Losses of evaluations have series and are not among `info.losses`.
        addresses = [series.address for series in self._run.catalogue if series.quantity == LOSS]
        return [address for address in addresses if address.startswith(loss_address(""))]

    def scalar(self, name: str) -> Curve:
        """What was logged under a name: one point per step, or per change."""
        self.read.add(f"scalar.{name.split(':', 1)[0]}")
        logged = self._scalars.get(name)
        if logged is None:
            return NOTHING
        return self._cut(Curve(logged.step, logged.value, np.ones(len(logged), np.int64)))

    def rates(self) -> dict[str, Curve]:
        """Every learning rate, one point per change, by `optimizer.group`."""
        names = [name for name in self._scalars if name.startswith("lr:")]
        return {name.removeprefix("lr:"): self.scalar(name) for name in names}

    def largest_rate(self) -> float:
        """The largest learning rate of any group at any step; NaN where none was kept."""
        largest = [float(curve.value.max()) for curve in self.rates().values() if len(curve)]
        return max(largest, default=float("nan"))

    def logged(self) -> dict[str, Curve]:
        """What the user logged: `watch.log(val_accuracy=…)`."""
        return {name: self.scalar(name) for name in self._scalars if not is_own_scalar(name)}

    @cached_property
    def _scalars(self) -> Mapping[str, Any]:
        return self._run.scalars

    def _read_series(self, address: str, quantity: str, phase: str) -> Series | None:
        key = (address, quantity, phase)
        if key not in self._series:
            if not self.has(address, quantity):
                return None
            for series in self._run.many(self._beside(address, quantity), phase):
                self._series[series.address, series.quantity, phase] = series
        return self._series[key]

    def _beside(self, address: str, quantity: str) -> list[tuple[str, str]]:
        """The series to read with one: their records lie together, and other rules ask for them."""
        if address.startswith("@"):
            return [pair for pair in self._catalogue if pair[0].startswith("@")]
        of_sites = [pair for pair in self._catalogue if not pair[0].startswith("@")]
        windows = max((len(series.steps) for series in self._series.values()), default=AT_ONCE)
        if windows * len(of_sites) <= AT_ONCE:
            return of_sites
        return [pair for pair in of_sites if pair[1] == quantity]


def _by_pass(points: LossCurve) -> float:
    """A loss as it is shown, by what its backward passes ran on; 1 where it is about the same."""
    divided, batches = points.divided, points.batches
    if divided is None or batches is None:
        return 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = points.shown / (points.value / np.where(divided > 0, batches, 1.0))
    finite = ratio[np.isfinite(ratio) & (ratio > 0)]
    usual = median(finite) if finite.size else 1.0
    return usual if not 0.75 < usual < 1.33 else 1.0


def _shown(address: str, quantity: str) -> str:
    """The name of a field: sites and losses all have the same one, and so have further inputs."""
    quantity = quantity.split(":", maxsplit=1)[0]
    return (
        f"{address.split(':', maxsplit=1)[0]}.{quantity}" if address.startswith("@") else quantity
    )
