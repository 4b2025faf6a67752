"""A run in one line: how it is, how far it came, what was found, its settings and its loss."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from nethook.doctor.verdict import verdict_of
from nethook.drawing.data import Floats, Integers, Line
from nethook.drawing.decimate import thin_line
from nethook.errors import RunFileError
from nethook.page.folder import Entry, Stamp, run_state, stamp_of
from nethook.runs.names import is_own_scalar
from nethook.runs.reading.comparing.facts import models_in_words
from nethook.runs.reading.losses.scores import shown_scores
from nethook.runs.reading.losses.shown import ShownLoss, phase_of, shown_losses
from nethook.runs.reading.results import Scalar
from nethook.runs.reading.run import Run, open_run
from nethook.runs.reading.settings import script_of, settings_of
from nethook.text.findings import read_findings
from nethook.text.findings import verdict as counted_findings
from nethook.text.numbers import number

_POINTS: Final = 120
_WIDE, _TALL = 120, 26  # pixels of a spark line
_METRICS: Final = 12  # that a run has in the list
_SCORES: Final = 4  # of them that are accuracies
_NOTHING: Final[tuple[Integers, Floats]] = (np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True)
class Summary:
    """What the list says of a run.

    `settings` are what it was started with, `origin` its script and its model, `metrics` its last
    numbers, `course` its loss in a few points.
    """

    stamp: Stamp
    state: str
    steps: int = 0
    verdict: str = ""
    severity: str = ""
    loss: str = ""
    spark: str = ""
    changed: float = 0.0
    problem: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    course: tuple[Integers, Floats] = field(default=_NOTHING, repr=False, compare=False)


class Summaries:
    """Summaries of runs, each made once for as long as the run does not change."""

    def __init__(self) -> None:
        self._known: dict[str, Summary] = {}
        self._lock = threading.Lock()
        self._reader: threading.Thread | None = None

    def known(self, entry: Entry, stamp: Stamp | None = None) -> Summary | None:
        """The summary of a run as it is now, if it was made already; `stamp` is that of now."""
        summary = self._known.get(entry.id)
        if summary is None or summary.state == "open":
            return None
        return summary if summary.stamp == (stamp or stamp_of(entry.path)) else None

    def last(self, entry: Entry) -> Summary | None:
        """The summary as it was made last, however old it is."""
        return self._known.get(entry.id)

    def make(self, entry: Entry) -> Summary:
        """The summary of a run as it is now."""
        summary = summary_of(entry)
        with self._lock:
            self._known[entry.id] = summary
        return summary

    def read_ahead(self, entries: Iterable[Entry]) -> None:
        """Read the summaries of these runs in a thread, as far as they are not known."""
        with self._lock:
            if self._reader is not None and self._reader.is_alive():
                return
            self._reader = threading.Thread(
                target=self._read, args=(list(entries),), name="nethook-runs", daemon=True
            )
            self._reader.start()

    def _read(self, entries: list[Entry]) -> None:
        for entry in entries:
            if self.known(entry) is None:
                self.make(entry)


def summary_of(entry: Entry) -> Summary:
    """Read a run for the list; one that cannot be read says why."""
    stamp = stamp_of(entry.path)
    try:
        changed = entry.path.stat().st_mtime
        with open_run(entry.path) as run:
            ranks, info = run.ranks, run.info
            state = run_state({rank.state for rank in ranks}, info)
            steps = max((rank.last_step for rank in ranks), default=-1) + 1
            word, severity = _verdict(run)
            scalars = run.scalars
            losses = shown_losses(run, scalars=scalars)
            shown, spark, course = ("", "", _NOTHING)
            if losses:
                shown = " → ".join(number(value, 4) for value in losses[0].ends)
                course = course_of(losses[0])
                spark = spark_line(*course) if len(course[0]) else ""
            return Summary(
                stamp, state, steps, word, severity, shown, spark, changed, "", settings_of(info),
                origin_of(info), metrics_of(losses, scalars), course,
            )  # fmt: skip
    except (RunFileError, OSError) as error:
        return Summary(stamp, "broken", problem=str(error))
    except Exception as error:  # a file of a stranger may be wrong in ways that nobody thought of
        return Summary(stamp, "broken", problem=f"{type(error).__name__}: {error}")


def _verdict(run: Run) -> tuple[str, str]:
    verdict = verdict_of(run)
    if verdict.state == "findings":
        return verdict.why, verdict.severity
    if verdict.state == "crashed" and run.findings:  # how it ended stands in another column
        return counted_findings(read_findings(run.findings)), verdict.severity
    return verdict.state, verdict.severity


def origin_of(info: Mapping[str, Any]) -> dict[str, str]:
    """The script and the model: runs of others are not told apart by their seeds."""
    found = {"script": script_of(info.get("command")), "model": models_in_words(info.get("models"))}
    return {name: text for name, text in found.items() if text}


def metrics_of(losses: list[ShownLoss], scalars: Mapping[str, Scalar]) -> dict[str, float]:
    """The last loss of each phase, accuracies, and the last of what the program logged."""
    found: dict[str, float] = {}
    for loss in losses:
        found.setdefault(loss.label, loss.last)
    scores = shown_scores(scalars)
    found |= {score.label: score.ends[-1] for score in list(scores.values())[:_SCORES]}
    for name, scalar in scalars.items():
        if len(found) >= _METRICS:
            break
        if name in scores:
            continue
        if not is_own_scalar(name) and phase_of(name) is None and len(scalar):
            found[name] = float(scalar.value[-1])
    return found


def course_of(loss: ShownLoss) -> tuple[Integers, Floats]:
    """A loss in at most so many points that a small picture shows, its finite values alone."""
    there = np.isfinite(loss.value)
    thin = thin_line(Line("", loss.step[there], loss.value[there]), _POINTS)
    return np.asarray(thin.step, dtype=np.int64), np.asarray(thin.value, dtype=np.float64)


def spark_line(step: Integers, value: Floats) -> str:
    """A line over steps without axes, as a picture in a `data:` address."""
    if len(step) > _POINTS:
        thin = thin_line(Line("", step, value), _POINTS)
        step, value = np.asarray(thin.step, dtype=np.int64), np.asarray(thin.value)
    if value.min() > 0 and value.max() / value.min() > 50:
        value = np.log10(value)
    x = _placed(np.asarray(step, dtype=np.float64), 2, _WIDE - 2)
    y = _placed(np.asarray(value, dtype=np.float64), _TALL - 3, 3)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    end = f'<circle cx="{x[-1]:.1f}" cy="{y[-1]:.1f}" r="2" fill="#2f8fd0"/>'
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{_TALL}">'
        f'<polyline points="{points}" fill="none" stroke="#2f8fd0" stroke-width="1.5"/>{end}</svg>'
    )
    return "data:image/svg+xml;base64," + base64.b64encode(picture.encode()).decode()


def _placed(values: Floats, first: float, last: float) -> Floats:
    """Values as places from `first` (the least) to `last` (the greatest)."""
    low, high = float(values.min()), float(values.max())
    if high == low:
        return np.full(len(values), (first + last) / 2)
    placed: Floats = first + (values - low) / (high - low) * (last - first)
    return placed
