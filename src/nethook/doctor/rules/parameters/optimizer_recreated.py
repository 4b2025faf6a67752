"""An optimizer is made anew again and again, and forgets what it knew of the gradients.

Cause: `optimizer = Adam(model.parameters())` stands inside the loop. Adam's averages and momentum
begin at zero each time: of an Adam that makes one step every weight moves by the whole rate, in
whatever direction one batch says.
Evidence: the optimizers that have held one parameter, of one line of the script, and the steps of
the run.
Fix: make it once, before the loop.
Silent: for optimizers that keep nothing from step to step (SGD without momentum), for those that
are made for other parameters, and for fewer than four. Where each makes more than three steps it is
a note: a fold, a task or a restart may begin so on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule


class Thresholds(NamedTuple):
    """What may be changed."""

    made: float = 4  # optimizers of one parameter
    often: float = 12  # from which on it is more than a note
    steps: float = 3  # of each, up to which it is


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    held = [
        {str(group[0]) for group in parameter.fact("groups") or [] if group}
        for parameter in history.parameters
    ]
    names = max(held, key=len, default=set())
    if len(names) < limit.made:
        return
    # One has several events where its settings change; of two that follow each other at one place
    # in memory the second may not be told apart, so that there are a few more than these.
    of_lines: dict[tuple[str, str], dict[str, int]] = {}
    for event in history.events("groups"):
        data: dict[str, Any] = event.data or {}
        if str(data.get("optimizer")) in names and _remembers(data):
            kind, line = str(data.get("type", "")), str(data.get("line", ""))
            of_lines.setdefault((kind, line), {}).setdefault(str(data["optimizer"]), event.step)
    if not of_lines:
        return
    (kind, line), first_steps = max(of_lines.items(), key=lambda entry: len(entry[1]))
    made, began = len(first_steps), min(first_steps.values())
    if made < limit.made:
        return
    each = (history.steps - began) / made
    sure = made >= limit.often and each <= limit.steps
    yield Finding(
        "optimizer-recreated",
        "warning" if sure else "info",
        f"the line that makes the optimizer ({kind}) was run at least {made} times for the "
        f"same parameters, about once in {max(each, 1):.3g} steps: each begins without "
        "the averages of the one before."
        + ("" if sure else " Is that meant, as for a new fold or task?"),
        "Make the optimizer once, before the loop.",
        first_step=began,
        last_step=max(history.steps - 1, began),
        evidence={
            "optimizers of one parameter": Evidence(made, limit.made),
            "steps of each": Evidence(each, limit.steps),
        },
        lines=(line,) if line else (),
    )


def _remembers(data: dict[str, Any]) -> bool:
    """Whether an optimizer keeps something from step to step."""
    if str(data.get("type", "")) in ("LBFGS", "ASGD"):
        return False
    groups = data.get("groups")
    first = groups[0] if isinstance(groups, list) and groups else {}
    if not isinstance(first, dict):
        return False
    return "momentum" not in first or bool(first.get("momentum")) or "alpha" in first


RULE = Rule(
    "optimizer-recreated",
    Cause.LOOP,
    look,
    reads=(
        "event.groups",
        "parameter.groups",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
