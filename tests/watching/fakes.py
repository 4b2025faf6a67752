"""The few things that a recorder needs of a session, written down as they come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from nethook.stats.fields import INDEX
from nethook.watching.series import Catalogue


class Raising:
    """A guard that hides nothing."""

    alive = True

    def failed(self, part, error, turn_off):
        raise error


class Writer:
    """A writer without a file."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int, str, str, Any]] = []
        self.points: list[tuple[str, float, int]] = []
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

    def info(self, **facts) -> None:
        self.infos |= facts

    def add_site(self, address, kind, info) -> None:
        self.sites[address] = (kind, info)

    def add_series(self, address, quantity, *, units=0, info=None) -> int:
        self.added.append((address, quantity, units))
        return len(self.added) - 1

    def snapshot(self, address, step, values) -> None:
        self.pictures.append((address, step, values))


def session(**more: Any) -> Any:
    """What most recorders ask for; `more` adds to it, or takes the place of it."""
    writer = Writer()
    catalogue = Catalogue(writer, 64)  # type: ignore[arg-type]
    made = SimpleNamespace(
        writer=writer, catalogue=catalogue, train=catalogue.new_rows(), row=catalogue.row, step=0,
        first_step=0, guard=Raising(), training=True, forwards=0, backwards=0, depth=0, looks=True,
        samples=True, skipped=False, world=1, wanted=("params", "updates", "param_grads"),
        snapshot_cap=1 << 20, spent=[0.0] * 5, flags=[], totals={}, on_step=[], on_window=[],
        on_gradients=[], op_lists={},
    )  # fmt: skip
    made.sampled = lambda: made.samples
    made.flag = lambda address, quantity, module, inputs, value: made.flags.append(
        (address, quantity)
    )
    made.event = lambda kind, message, address="", data=None: writer.event(
        kind, made.step, message, address, data
    )
    made.note_event = made.event
    made.__dict__.update(more)
    return made


def field(session: Any, address: str, quantity: str, name: str) -> float:
    """One number of the row of a series."""
    session.train.collect()
    return float(session.train.matrix[session.row(address, quantity), INDEX[name]])
