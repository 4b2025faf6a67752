"""Which findings of a run have a fix that can be applied from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from nethook.running.trying.change import Change
from nethook.runs.reading.run import Run

FIXES: Final = (
    *("learning_rate", "weight_decay", "clipping", "modes", "gradients", "shuffling"),
    *("missing_parameters", "initialisation"),
)
"""The files of `fixes/` that have one."""
MOST: Final = 3
"""Changes that are tried."""


def changes_for(run: Run) -> list[Change]:
    """A change for each of the first findings that have one, in the order of the findings."""
    by_code = {
        code: module
        for name in FIXES
        for module in [import_module(f"nethook.running.trying.fixes.{name}")]
        for code in module.CODES
    }
    changes: dict[tuple[str, str], Change] = {}
    for finding in _root_causes(run):
        module = by_code.get(str(finding.get("code")))
        change = None if module is None else module.propose(finding, run)
        if change is not None:
            changes.setdefault((change.fix, change.said), change)
    return [*changes.values()][:MOST]


def _root_causes(run: Run) -> Iterator[Mapping[str, Any]]:
    """The findings themselves: what follows from one goes with it."""
    for finding in run.findings:
        if finding.get("severity") != "info":
            yield finding
