"""Two runs compared, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nethook.figures.reading import Reading
from nethook.figures.runs import WORDS, AnyRun, names_of_two
from nethook.runs import names
from nethook.runs.reading.comparing.divergence import Parting, Point, find_parting
from nethook.text.escape import line, shorten
from nethook.text.numbers import number
from nethook.text.table import Table


class Difference:
    """What is different between two runs."""

    def __init__(self, first: AnyRun, second: AnyRun) -> None:
        self.first, self.second = Reading(first), Reading(second)
        self.parting: Parting = find_parting(self.first.run, self.second.run)
        self.names = names_of_two(self.first, self.second)

    def headline(self) -> str:
        """One sentence."""
        parting = self.parting
        if not parting.compared or not parting.windows:
            return (
                "They have nothing in common that could be compared: no series at the same steps."
            )
        if parting.same:
            return (
                f"They are equal in all that both recorded: {parting.compared:,} series in "
                f"{parting.windows:,} windows."
            )
        point = parting.points[0]
        return f"They diverge at step {point.step:,}, first in {_where(point)}."

    def text(self) -> str:
        """All of it, for a terminal."""
        return "\n\n".join(self._paragraphs())

    def _paragraphs(self) -> Iterator[str]:
        yield self.headline()
        if self.parting.points:
            rows = [
                (
                    point.words,
                    f"{point.step:,}",
                    shorten(place_of(point), 40),
                    shorten(what_of(point), 40),
                    number(point.first, 5),
                    number(point.second, 5),
                )
                for point in self.places()
            ]
            one, two = (shorten(name, 24) for name in self.names)
            columns = ("difference", "step", "where", "what", one, two)
            yield Table("", columns, rows, frozenset(["step", one, two])).text().lstrip("\n")
        if losses := self.losses():
            yield "\n".join(f"{line(name)}: loss {text}" for name, text in losses)
        for name, sites in zip(
            self.names, (self.parting.only_first, self.parting.only_second), strict=True
        ):
            if sites:
                shown = ", ".join(shorten(site, 40) for site in sites[:8])
                more = f" and {len(sites) - 8} more" if len(sites) > 8 else ""
                yield f"Only in {line(name)}: {shown}{more}"
        if self.parting.facts:
            facts = [
                (shorten(name, 30), shorten(one, 60), shorten(two, 60))
                for name, one, two in self.parting.facts
            ]
            yield Table("What ran", ("", *map(shorten, self.names)), facts).text()

    def places(self) -> list[Point]:
        """The points at which they diverge, each place once, with its largest limit."""
        values = {
            (point.step, point.address, point.quantity): point for point in self.parting.points
        }
        return list(values.values())

    def losses(self) -> list[tuple[str, str]]:
        """The loss of each run, from its start to its end."""
        pairs = zip(self.names, (self.first, self.second), strict=True)
        return [(name, text) for name, reading in pairs if (text := loss_of(reading))]


def loss_of(reading: Reading) -> str:
    """`2.3 → 0.1 in 1,000 steps`, or ""."""
    if not reading.losses:
        return ""
    loss = reading.losses[0]
    ends = " → ".join(number(value, 4) for value in loss.ends)
    return f"{ends} in {reading.last_step + 1:,} steps ({loss.counted})"


def place_of(point: Point) -> str:
    """Where two runs diverge: a site, or what is meant by an address that is no site's."""
    kind, _, name = point.address.partition(":")
    if kind not in _PLACES:
        return point.address or "(model)"
    return f"{_PLACES[kind]} ({name})" if name else _PLACES[kind]


def what_of(point: Point) -> str:
    """Which number differs there, in words."""
    return f"{_quantity(point)}, {point.column}"


def _where(point: Point) -> str:
    return (
        f"{_quantity(point)} of {shorten(place_of(point), 60)} ({point.column} "
        f"{number(point.first, 5)} against {number(point.second, 5)})"
    )


def _quantity(point: Point) -> str:
    if point.address == names.LOOP:
        return _LOOP.get(point.quantity, point.quantity.replace("_", " "))
    return WORDS.get(point.quantity, point.quantity.replace("_", " "))


_PLACES: Final = {names.LOOP: "the loop", names.BATCH: "batches", "@loss": "the loss"}
_LOOP: Final = {
    names.GRAD_NORM: "gradient norm",
    names.GRAD_NORM_UNCLIPPED: "gradient norm before clipping",
    names.UPDATE_RATIO: "update / weight",
}
