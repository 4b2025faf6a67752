"""A run in one line: how it is, how far it came, what was found, the course of its loss."""

from __future__ import annotations

import base64
import threading
from dataclasses import dataclass

import numpy as np

from nethook.doctor.verdict import verdict_of
from nethook.drawing.data import Floats
from nethook.errors import RunFileError
from nethook.page.folder import Entry, Stamp, stamp_of
from nethook.runs.reading.run import Run, open_run
from nethook.runs.reading.shown_losses import shown_losses
from nethook.text.numbers import number

_POINTS = 120
_WIDE, _TALL = 120, 26  # pixels of a spark line


@dataclass(frozen=True)
class Summary:
    """What the list says of a run."""

    stamp: Stamp
    state: str
    steps: int = 0
    verdict: str = ""
    severity: str = ""
    loss: str = ""
    spark: str = ""
    changed: float = 0.0
    problem: str = ""


class Summaries:
    """Summaries of runs, each made once for as long as the run does not change."""

    def __init__(self) -> None:
        self._known: dict[str, Summary] = {}
        self._lock = threading.Lock()

    def known(self, entry: Entry) -> Summary | None:
        """The summary of a run as it is now, if it was made already."""
        summary = self._known.get(entry.id)
        fresh = summary is not None and summary.stamp == stamp_of(entry.path)
        return summary if fresh and summary is not None and summary.state != "open" else None

    def make(self, entry: Entry) -> Summary:
        """The summary of a run as it is now."""
        summary = summary_of(entry)
        with self._lock:
            self._known[entry.id] = summary
        return summary


def summary_of(entry: Entry) -> Summary:
    """Read a run for the list; one that cannot be read says why."""
    stamp = stamp_of(entry.path)
    try:
        changed = entry.path.stat().st_mtime
        with open_run(entry.path) as run:
            ranks = run.ranks
            states = {rank.state for rank in ranks}
            state = next((s for s in ("open", "died", "finished") if s in states), "missing")
            steps = max((rank.last_step for rank in ranks), default=-1) + 1
            word, severity = _verdict(run)
            shown, spark = ("", "")
            if losses := shown_losses(run):
                shown = f"{number(losses[0].first, 4)} → {number(losses[0].last, 4)}"
                finite = losses[0].value[np.isfinite(losses[0].value)]
                spark = spark_line(finite) if finite.size else ""
            return Summary(stamp, state, steps, word, severity, shown, spark, changed)
    except (RunFileError, OSError) as error:
        return Summary(stamp, "broken", problem=str(error))
    except Exception as error:  # a file of a stranger may be wrong in ways that nobody thought of
        return Summary(stamp, "broken", problem=f"{type(error).__name__}: {error}")


def _verdict(run: Run) -> tuple[str, str]:
    verdict = verdict_of(run)
    if verdict.state == "findings":
        return verdict.why, verdict.severity
    return verdict.state, verdict.severity


def spark_line(values: Floats) -> str:
    """A line without axes, as a picture in a `data:` address."""
    if len(values) > _POINTS:
        values = values[np.linspace(0, len(values) - 1, _POINTS).astype(int)]
    if values.min() > 0 and values.max() / values.min() > 50:
        values = np.log10(values)
    low, high = float(values.min()), float(values.max())
    x = np.linspace(2, _WIDE - 2, max(2, len(values)))
    y = np.full(len(x), _TALL / 2) if high == low else None
    if y is None:
        y = _TALL - 3 - (values - low) / (high - low) * (_TALL - 6)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=False))
    end = f'<circle cx="{x[len(y) - 1]:.1f}" cy="{y[-1]:.1f}" r="2" fill="#2f8fd0"/>'
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{_TALL}">'
        f'<polyline points="{points}" fill="none" stroke="#2f8fd0" stroke-width="1.5"/>{end}</svg>'
    )
    return "data:image/svg+xml;base64," + base64.b64encode(picture.encode()).decode()
