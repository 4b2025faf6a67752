"""Which call made an autograd node, as far as a tape knows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from torch.autograd.graph import Node

from nethook.hooks.autograd.nodes import number
from nethook.tracing.tape.entry import Entry
from nethook.tracing.tape.tape import Tape


class Stretch(NamedTuple):
    """The numbers of the nodes that were made while one call ran."""

    begin: int
    end: int
    address: str
    call: int | None  # None where the site was called once
    is_op: bool


class Makers:
    """Answers which call made a node: the innermost that was running when it was made."""

    def __init__(self, stretches: Iterable[Stretch]) -> None:
        # Outer ones first. A module and its only operation have the same stretch.
        self._stretches = sorted(
            stretches, key=lambda stretch: (stretch.begin, -stretch.end, stretch.is_op)
        )
        self._begins = [stretch.begin for stretch in self._stretches]
        self._around = _enclosing(self._stretches)

    def of(self, node: Node) -> tuple[str | None, int | None]:
        """The address and the number of the call; None for both where it is not known."""
        made = number(node)
        return (None, None) if made is None else self.at(made)

    def at(self, made: int) -> tuple[str | None, int | None]:
        """The same for the number of a node."""
        position: int | None = bisect_right(self._begins, made) - 1
        while position is not None and position >= 0:
            stretch = self._stretches[position]
            if made < stretch.end:
                return stretch.address, stretch.call
            position = self._around[position]
        return None, None


def _enclosing(stretches: list[Stretch]) -> list[int | None]:
    """For each stretch, the place of the one around it. Calls of one thread nest."""
    around: list[int | None] = []
    open_ones: list[int] = []
    for position, stretch in enumerate(stretches):
        while open_ones and stretches[open_ones[-1]].end < stretch.end:
            open_ones.pop()
        around.append(open_ones[-1] if open_ones else None)
        open_ones.append(position)
    return around


def stretches(tape: Tape | None) -> list[Stretch]:
    """The calls that a tape has recorded, as stretches of numbers."""
    by_thread: list[tuple[int, Stretch]] = []
    for record in () if tape is None else tape.values():
        dropped = record.total - len(record.entries)
        is_op = record.op is not None
        for position, fields in enumerate(record.entries):
            entry = Entry(*fields)
            if entry.end > entry.begin:
                call = None if record.total == 1 else dropped + position
                stretch = Stretch(entry.begin, entry.end, record.address, call, is_op)
                by_thread.append((entry.thread, stretch))
    # Every thread counts for itself, and a node does not say which one made it.
    return (
        [stretch for _, stretch in by_thread]
        if len({thread for thread, _ in by_thread}) == 1
        else []
    )
