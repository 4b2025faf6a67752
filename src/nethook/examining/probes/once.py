"""What several experiments need of a rehearsal, run once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from nethook.examining.rehearsal import Ran, Rehearsal

_Made = TypeVar("_Made")


def once(rehearsal: Rehearsal, name: str, make: Callable[[], _Made]) -> _Made:
    """What `make` returns: for the first experiment that asks, and for all others."""
    if name not in rehearsal.notes:
        rehearsal.notes[name] = make()
    made: _Made = rehearsal.notes[name]
    return made


def evaluated(rehearsal: Rehearsal) -> Ran:
    """The unchanged step in evaluation mode; without the loss where that cannot be replayed."""
    return once(
        rehearsal,
        "evaluated",
        lambda: rehearsal.run(training=False, outputs_only=not rehearsal.replayable),
    )


def with_graph(rehearsal: Rehearsal) -> Ran:
    """The unchanged step with its graph, in the modes that it was in."""
    return once(rehearsal, "with graph", lambda: rehearsal.run(grad=True))
