"""Runs made of plain numbers, with the interface that `History` reads: no file, no training.

made = Made(steps=200).loss(falling(200)).loop("update_ratio", 1e-3)
made.found("learning-rate-too-low")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nethook.doctor.finding import Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Rule
from nethook.doctor.rules import own_rules
from nethook.runs.names import loss_of_scalar
from nethook.runs.reading.losses.curve import curve_of
from nethook.runs.reading.results import EventRecord

Numbers = float | Sequence[float] | npt.NDArray[np.float64]
LOSS = "train.py:10"


def falling(
    steps: int, start: float = 2.3, end: float = 0.1, noise: float = 0.02, seed: int = 0
) -> npt.NDArray[np.float64]:
    """A loss that falls as losses do."""
    chance = np.random.default_rng(seed)
    course = end + (start - end) * np.exp(-5 * np.arange(steps) / steps)
    values: npt.NDArray[np.float64] = course + noise * chance.standard_normal(steps)
    return values


def flat(
    steps: int, level: float = 2.3, noise: float = 0.05, seed: int = 0
) -> npt.NDArray[np.float64]:
    """A loss that stays where it is."""
    values: npt.NDArray[np.float64] = level + noise * np.random.default_rng(seed).standard_normal(
        steps
    )
    return values


@dataclass
class MadeSeries:
    """A series as `run.many` returns it."""

    address: str
    quantity: str
    columns: dict[str, npt.NDArray[np.float64]]
    seen: npt.NDArray[np.int64]
    last_step: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]
    counted = 1
    info: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> npt.NDArray[np.float64]:
        return self.columns.get(name, np.zeros(len(self.steps)))


class Made:
    """A run under construction; every method returns the run itself."""

    def __init__(self, steps: int = 200) -> None:
        self.count = steps
        self.began = 0
        self.info: dict[str, Any] = {}
        self.sites: list[SimpleNamespace] = []
        self.events: list[EventRecord] = []
        self.losses: list[SimpleNamespace] = []
        self.scalars: dict[str, Any] = {}
        self.ranks: list[SimpleNamespace] = []
        self._rank_scalars: dict[int, dict[str, Any]] = {}
        self._series: dict[tuple[str, str, str], MadeSeries] = {}
        self._active: dict[str, npt.NDArray[np.bool_]] = {}
        self.loop("forwards", 1).loop("backwards", 1).loop("optimizer_steps", 1)

    # -- making -------------------------------------------------------------------------------

    def series(
        self,
        address: str,
        quantity: str,
        *,
        phase: str = "train",
        at: Sequence[int] | None = None,
        info: dict[str, Any] | None = None,
        **columns: Numbers,
    ) -> Self:
        """Columns of a series, a number a step, or one for all."""
        length = max([self.count if at is None else len(at), 1])
        for value in columns.values():
            if not isinstance(value, int | float):
                length = len(value)
        steps = np.arange(length) if at is None else np.asarray(at, dtype=np.int64)
        filled = {
            name: np.broadcast_to(np.asarray(value, np.float64), (length,)).copy()
            for name, value in columns.items()
        }
        if quantity == "loss":
            filled["nonfinite_share"] = (~np.isfinite(filled["mean"])).astype(np.float64)
        self._series[address, quantity, phase] = MadeSeries(
            address, quantity, filled, np.ones(length, np.int64), steps,
            np.ones(length, np.int64), info or {},
        )  # fmt: skip
        return self

    def loop(self, quantity: str, values: Numbers) -> Self:
        """A number of the loop."""
        return self.series("@loop", quantity, mean=values, max=values)

    def batch(self, quantity: str, values: Numbers) -> Self:
        """A number of the batches."""
        return self.series("@batch", quantity, mean=values)

    def loss(
        self,
        values: Numbers,
        name: str = LOSS,
        phase: str = "train",
        at: Sequence[int] | None = None,
    ) -> Self:
        """The course of a loss."""
        return self.series(f"@loss:{name}", "loss", phase=phase, at=at, mean=values)

    def record(
        self,
        *steps: int,
        name: str = LOSS,
        phase: str = "train",
        **data: Any,
    ) -> Self:
        """How a loss was made, at some steps."""
        usual = {"kind": "other", "reduction": "mean", "factor": 1.0, "value": 1.0, "chain": []}
        for step in steps or (0, 1, 2, 4, 8):
            made = SimpleNamespace(name=name, step=step, phase=phase, data={**usual, **data})
            self.losses.append(made)
        return self

    def examined(
        self, experiment: str, outcome: str = "found", reason: str = "", step: int = 2, **facts: Any
    ) -> Self:
        """What came of an experiment on a copy."""
        result = {"experiment": experiment, "outcome": outcome, "reason": reason, "step": step}
        self.info.setdefault("examined", []).append({**result, "facts": facts})
        return self

    def module(self, address: str, kind: str = "Linear", **facts: Any) -> Self:
        """A module without modules below it, called in every step."""
        order = len(self.sites)
        usual = {
            "leaf": True, "first_call": order, "order": order, "parameters": [],
            "calls": {"train": self.count, "eval": 0}, "modes": [[0, "train", True]],
            "batch": [32, 32, 32],
        }  # fmt: skip
        known = {**usual, **facts}
        kept = {name: value for name, value in known.items() if value is not None}
        self.sites.append(SimpleNamespace(address=address, kind=kind, info=kept))
        return self

    def parameter(self, address: str, **facts: Any) -> Self:
        """A parameter that an optimizer has and moves."""
        usual = {
            "shape": [16, 16], "elements": 256, "requires_grad": True, "groups": [["0", 0]],
            "steps": self.count, "with_grad": self.count, "moved": [self.count, self.count],
            "owners": [address.rpartition(".")[0]],
        }  # fmt: skip
        info = {**usual, **facts}
        self.sites.append(SimpleNamespace(address=address, kind="Parameter", info=info))
        return self

    def event(
        self, kind: str, step: int = 0, address: str = "", message: str = "", **data: Any
    ) -> Self:
        """Something that happened."""
        self.events.append(EventRecord(step, 0.0, kind, address, message, data, 0, 0))
        return self

    def scalar(self, name: str, steps: Sequence[int], values: Sequence[float]) -> Self:
        """What was logged under a name."""
        loss = loss_of_scalar(name)
        if loss is None:
            self.scalars[name] = _Scalar(steps, values)
        else:
            points = np.column_stack([steps, np.zeros(len(values)), values])
            self.scalars[name] = curve_of(name, *loss, [points], None)
        return self

    def rate(self, *values: float) -> Self:
        """A learning rate, a value a step."""
        return self.scalar("lr:0.0", range(len(values)), values)

    def rank(self, number: int, fingerprints: Sequence[float], state: str = "finished") -> Self:
        """A rank, and the fingerprints of its parameters."""
        self.ranks.append(SimpleNamespace(rank=number, state=state))
        steps = [0, *(2**power for power in range(len(fingerprints) - 1))]
        self._rank_scalars[number] = {"params_fingerprint": _Scalar(steps, fingerprints)}
        return self

    def units(self, address: str, active: Sequence[bool]) -> Self:
        """Which units of a layer were ever active in the run."""
        self._active[address] = np.asarray([active, active], dtype=bool)
        return self.series(address, "outputs", zero_share=1.0 - float(np.mean(active)) / 2)

    def thin(self, every: int) -> Self:
        """As a budget leaves it: what is measured of tensors is there in every n-th step alone."""
        for (address, quantity, _), series in self._series.items():
            thinned = not address.startswith("@") or quantity in ("grad_norm", "update_ratio")
            if thinned:
                chosen = (series.last_step % every == 0) | (series.last_step < 8)
                series.seen = np.where(chosen, series.seen, 0)
        return self

    def later(self, by: int) -> Self:
        """As a run whose record begins so many steps later: what has a step has a later one."""
        self.began += by
        for series in self._series.values():
            series.last_step = series.last_step + by
        self.events = [replace(event, step=event.step + by) for event in self.events]
        for record in self.losses:
            record.step += by
        for scalars in (self.scalars, *self._rank_scalars.values()):
            for scalar in scalars.values():
                scalar.step = scalar.step + by
        for site in self.sites:
            facts = site.info
            if "modes" in facts:
                facts["modes"] = [[step + by, *rest] for step, *rest in facts["modes"]]
            for name in ("distinct_rows", "distinct_grad_rows"):
                if name in facts:
                    facts[name] = {str(int(step) + by): n for step, n in facts[name].items()}
        graph = self.info.get("graph", {})
        for entry in (one for facts in graph.values() if isinstance(facts, list) for one in facts):
            if "since" in entry:
                entry["since"] += by
        for result in self.info.get("examined", ()):
            result["step"] += by
        return self

    # -- what `History` asks ------------------------------------------------------------------

    @property
    def catalogue(self) -> list[Any]:
        """Every series, once."""
        keys = dict.fromkeys((address, quantity) for address, quantity, _ in self._series)
        return [
            SimpleNamespace(address=address, quantity=quantity, info=self._info(address, quantity))
            for address, quantity in keys
        ]

    def _info(self, address: str, quantity: str) -> dict[str, Any]:
        found = self._series.get((address, quantity, "train"))
        return found.info if found is not None else {}

    def many(self, keys: Sequence[tuple[str, str]], phase: str = "train") -> list[MadeSeries]:
        """Some series of a phase; empty ones where there are none."""
        nothing = np.zeros(0, np.int64)
        return [
            self._series.get((*key, phase), MadeSeries(*key, {}, nothing, nothing, nothing))
            for key in keys
        ]

    def units_of(self, address: str) -> Any:
        """Which units were active."""
        active = self._active.get(address, np.zeros((0, 0), dtype=bool))
        ends = self.began + np.asarray([self.count // 2 - 1, self.count - 1])[: len(active)]
        return SimpleNamespace(active=active, last_step=ends)

    def without(self, field: str) -> Self:
        """As a file that lacks one of the fields that rules read, as `History.read` names it."""
        kind, _, name = field.partition(".")
        if kind == "series":
            quantity, _, _ = name.rpartition(".")
            quantity = quantity.removesuffix(".info").rpartition(".")[2]
            for key in [key for key in self._series if key[1] == quantity]:
                del self._series[key]
        elif kind == "loss":
            for record in self.losses:
                record.data.pop(name, None)
        elif kind in ("module", "parameter"):
            for site in self.sites:
                if (site.kind == "Parameter") is (kind == "parameter"):
                    site.info.pop(name, None)
        elif kind == "event":
            self.events = [event for event in self.events if event.kind != name]
        elif kind == "scalar":
            self.scalars = {key: v for key, v in self.scalars.items() if not key.startswith(name)}
            self._rank_scalars = {rank: {} for rank in self._rank_scalars}
        elif kind == "units":
            self._active.clear()
        elif kind == "examined":
            for result in self.info.get("examined", ()):
                result["facts"].pop(name.rpartition(".")[2], None)
        else:
            assert kind == "info", field
            self.info.pop(name, None)
        return self

    def history(self, until: int | None = None) -> History:
        """What rules read, up to a step."""
        run = SimpleNamespace(
            info=self.info, sites=self.sites, events=tuple(self.events), losses=tuple(self.losses),
            scalars=self.scalars, ranks=self.ranks, catalogue=self.catalogue, many=self.many,
            units=lambda address, _quantity: self.units_of(address),
            scalars_by_rank=self._scalars_by_rank,
        )  # fmt: skip
        return History(run, until)  # type: ignore[arg-type]

    def _scalars_by_rank(self, prefix: str) -> dict[str, dict[int, Any]]:
        by_name: dict[str, dict[int, Any]] = {}
        here = {rank.rank for rank in self.ranks if rank.state not in ("missing", "unreadable")}
        for rank, scalars in self._rank_scalars.items():
            if rank not in here:
                continue
            for name, scalar in scalars.items():
                if name.startswith(prefix):
                    by_name.setdefault(name, {})[rank] = scalar
        return by_name

    def found(self, code: str, *, until: int | None = None, **thresholds: float) -> list[Finding]:
        """What one rule says of the run, or of its beginning."""
        rule = rule_of(code)
        history = self.history(until)
        findings = list(rule.look(history, rule.thresholds(thresholds)))
        unknown = history.read - set(rule.reads)
        assert not unknown, f"{code} reads what it does not name: {sorted(unknown)}"
        assert all(finding.code == code for finding in findings)
        return findings


class _Scalar:
    def __init__(self, steps: Sequence[int], values: Sequence[float]) -> None:
        self.step = np.asarray(steps, dtype=np.int64)
        self.value = np.asarray(values, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.step)


def rule_of(code: str) -> Rule:
    """The rule of a code."""
    return next(rule for rule in own_rules() if rule.code == code)
