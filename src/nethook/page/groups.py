"""Runs that differ in nothing but their seed: one group, drawn as a band."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nethook.drawing.data import Line, Panel, Spec
from nethook.drawing.palette import LINES
from nethook.drawing.training.curves import curves
from nethook.page.folder import Entry
from nethook.page.summaries import Summary
from nethook.runs.reading.settings import without_seed
from nethook.text.escape import shorten

_POINTS: Final = 240  # of a band
_MOST: Final = 6  # groups that can be told apart in one figure


@dataclass(frozen=True)
class Group:
    """Runs of one script and model with the same settings, seeds aside."""

    settings: tuple[tuple[str, str], ...]
    runs: tuple[tuple[Entry, Summary], ...]

    @property
    def losses(self) -> list[float]:
        """The last loss of each run, where it is finite."""
        found = [summary.metrics.get("loss", math.nan) for _, summary in self.runs]
        return [loss for loss in found if math.isfinite(loss)]

    @property
    def mean(self) -> float:
        """The mean of the last losses."""
        return statistics.fmean(self.losses) if self.losses else math.nan

    @property
    def std(self) -> float:
        """Their standard deviation; NaN of fewer than two."""
        return statistics.stdev(self.losses) if len(self.losses) > 1 else math.nan


def groups_of(runs: Sequence[tuple[Entry, Summary]]) -> list[Group]:
    """The groups of runs, in the order of their first run; a run that cannot be read is in none."""
    found: dict[tuple[tuple[str, str], ...], list[tuple[Entry, Summary]]] = {}
    for entry, summary in runs:
        if summary.state != "broken":
            alike = (*sorted(summary.origin.items()), *without_seed(summary.settings))
            found.setdefault(alike, []).append((entry, summary))
    return [Group(settings, tuple(members)) for settings, members in found.items()]


def group_names(groups: Sequence[Group]) -> list[str]:
    """What tells the groups apart: the settings that are not the same in all of them."""
    common = set.intersection(*(set(group.settings) for group in groups)) if groups else set()
    names = []
    for number, group in enumerate(groups, start=1):
        own = [f"{name}={value}" for name, value in group.settings if (name, value) not in common]
        names.append(" ".join(own) or (f"group {number}" if len(groups) > 1 else "all runs"))
    return names


def groups_spec(groups: Sequence[Group]) -> Spec | None:
    """The loss of each group: the mean of its runs, and a band from min to max."""
    shown = [group for group in groups if any(len(run.course[0]) for _, run in group.runs)][:_MOST]
    if not shown:
        return None
    names = dict(zip(map(id, groups), group_names(groups), strict=True))
    lines = [
        _band(group, names[id(group)], LINES[at % len(LINES)]) for at, group in enumerate(shown)
    ]
    values = np.concatenate([line.value for line in lines])
    finite = values[np.isfinite(values)]
    wide = finite.size and finite.min() > 0 and finite.max() / finite.min() > 50
    panel = Panel(
        "loss", lines, "The mean of the runs of each group; a band from min to max.",
        scale="log" if wide else "linear", tall=2.2,
    )  # fmt: skip
    return curves([panel])


def _band(group: Group, name: str, colour: str) -> Line:
    """Mean, min and max of the runs that have come so far, at common steps."""
    courses = [run.course for _, run in group.runs if len(run.course[0])]
    last = max(int(step[-1]) for step, _ in courses)
    first = min(int(step[0]) for step, _ in courses)
    steps = np.unique(np.linspace(first, last, _POINTS).astype(np.int64))
    table = np.full((len(courses), len(steps)), np.nan)
    for row, (step, value) in enumerate(courses):
        there = (steps >= step[0]) & (steps <= step[-1])
        table[row, there] = np.interp(steps[there], step, value)
    some = ~np.isnan(table).all(axis=0)
    table, steps = table[:, some], steps[some]
    label = shorten(f"{name} ({len(courses)})", 40)
    if len(courses) == 1:
        return Line(label, steps, table[0], colour=colour)
    return Line(
        label, steps, np.nanmean(table, axis=0), np.nanmin(table, axis=0),
        np.nanmax(table, axis=0), colour=colour,
    )  # fmt: skip
