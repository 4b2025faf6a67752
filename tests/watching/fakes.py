"""A journal for recorders, written down as it comes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from nethook.stats.fields import INDEX
from nethook.watching.clock.clock import Clock
from nethook.watching.journal import Options
from nethook.watching.measuring.parameter_facts import ParameterFacts
from nethook.watching.series import Catalogue


class Raising:
    """A guard that hides nothing."""

    alive = True
    silent = False

    def failed(self, part, error, turn_off):
        raise error


class Writer:
    """A writer without a file."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int, str, str, Any]] = []
        self.points: list[tuple[str, float, int]] = []
        self.rows: list[tuple[Any, ...]] = []  # of `log_points`, whole
        self.infos: dict[str, Any] = {}
        self.sites: dict[str, Any] = {}
        self.added: list[tuple[str, str, int]] = []
        self.pictures: list[tuple[str, int, Any]] = []
        self.earlier: dict[str, Any] = {}
        self.earlier_sites: dict[str, Any] = {}
        self.waiting = 0

    def event(self, kind, step, message, address="", data=None) -> None:
        self.events.append((kind, step, message, address, data))

    def log(self, name, value, step, *, keep=0) -> None:
        self.points.append((name, value, step))

    def log_points(self, name, points, *, keep=0) -> None:
        self.rows += [(name, *point) for point in points]
        self.points += [(name, value, step) for step, _, value, *_ in points]

    def info(self, **facts) -> None:
        self.infos |= facts

    def add_site(self, address, kind, info) -> None:
        self.sites[address] = (kind, info)

    def add_series(self, address, quantity, *, units=0, info=None) -> int:
        self.added.append((address, quantity, units))
        return len(self.added) - 1

    def snapshot(self, address, step, values) -> None:
        self.pictures.append((address, step, values))


def journal(**more: Any) -> Any:
    """A journal without a file; `more` adds to it, or takes the place of it.

    Its schedule is one in which everything is due in every step.
    """
    writer = Writer()
    catalogue = Catalogue(writer, 64)  # type: ignore[arg-type]
    clock = Clock()
    made = SimpleNamespace(
        writer=writer, catalogue=catalogue, train=catalogue.new_rows(), off=catalogue.new_rows(),
        has_off=True, row=catalogue.row, clock=clock, guard=Raising(), flags=[], eventful=False,
        options=Options(("params", "updates", "param_grads"), snapshot_cap=1 << 20),
        schedule=schedule(), step=0, phase="train",
    )  # fmt: skip
    made.sampled = lambda: made.schedule.samples
    made.flag = lambda address, quantity, module, inputs, value: made.flags.append(
        (address, quantity)
    )
    made.event = lambda kind, message, address="", data=None: writer.event(
        kind, made.step, message, address, data
    )
    made.note_event = made.event
    made.__dict__.update(more)
    return made


def facts_of(*tensors: torch.Tensor) -> list[ParameterFacts]:
    """A parameter of each tensor: "p0", "p1", ..."""
    return [ParameterFacts(f"p{at}", nn.Parameter(each)) for at, each in enumerate(tensors)]


def schedule(**more: Any) -> Any:
    """Everything is due."""
    made = SimpleNamespace(
        outputs=True, grads=True, param_grads=True, params=True, looks=True, samples=True,
        quiet=False, spent=[0.0] * 5, hook_seconds=0.0, until=0, measures=True,
        hidden=SimpleNamespace(known=False), budget=SimpleNamespace(share=None, overhead=0.0),
    )  # fmt: skip
    made.__dict__.update(more)
    return made


def at(of: Any, step: int) -> None:
    """Says which step it is."""
    of.step = of.clock.step = step


def field(of: Any, address: str, quantity: str, name: str) -> float:
    """One number of the row of a series."""
    of.train.collect()
    return float(of.train.matrix[of.row(address, quantity), INDEX[name]])
