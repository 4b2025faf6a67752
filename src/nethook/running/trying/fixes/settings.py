"""What fixes of an optimizer's settings share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from nethook.doctor.history import History
from nethook.hooks.attachment import Attachment
from nethook.running.trying.limits import around_steps
from nethook.runs.names import GROUPS, UPDATE_RATIO
from nethook.runs.reading.run import Run
from nethook.text.findings import read_evidence

_FIRST: Final = 3
"""Steps in which gradients are still those of the start."""


def evidence(finding: Mapping[str, Any], name: str) -> float | None:
    """A number that a finding gives as its evidence, if it is finite and positive."""
    for entry in read_evidence(finding.get("evidence")):
        if entry.name == name and isinstance(entry.value, int | float):
            value = float(entry.value)
            return value if math.isfinite(value) and value > 0 else None
    return None


def rate_of(run: Run) -> float | None:
    """The largest learning rate of a run."""
    rate = History(run).largest_rate()
    return rate if math.isfinite(rate) and rate > 0 else None


def first_update_of(run: Run) -> float | None:
    """By which share of their size the first steps of a run changed the weights."""
    ratio = History(run).loop(UPDATE_RATIO).value[:_FIRST]
    first = [float(value) for value in ratio if math.isfinite(value) and value > 0]
    return min(first, default=None)


def setting_of(run: Run, name: str) -> float | None:
    """The largest value that a setting of the optimizers had in a run."""
    values = [
        float(group[name])
        for event in run.events
        if event.kind == GROUPS
        for group in event.data.get("groups") or ()
        if isinstance(group, dict) and isinstance(group.get(name), int | float)
    ]
    return max(values, default=None)


def scaled_in_steps(
    hooks: Attachment, done: Callable[[], None], name: str, change: Callable[[Any], Any]
) -> None:
    """Each step is taken with a setting changed, and the script sees it as it was."""
    before: dict[int, list[tuple[dict[str, Any], Any]]] = {}

    def set_other(optimizer: Any) -> None:
        put_back(optimizer)  # of a step that an exception has ended
        kept = [(group, group[name]) for group in optimizer.param_groups if name in group]
        before[id(optimizer)] = kept
        for group, value in kept:
            group[name] = change(value)
        if kept:
            done()

    def put_back(optimizer: Any) -> None:
        for group, value in before.pop(id(optimizer), ()):
            group[name] = value

    around_steps(hooks, set_other, put_back)
