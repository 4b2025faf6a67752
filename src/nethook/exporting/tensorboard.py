"""A run as an event file of TensorBoard: scalars, numbers of series, histograms."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from nethook.runs import names
from nethook.runs.format.schema import PHASES
from nethook.runs.reading.losses.shown import LOGGED, shown_losses
from nethook.runs.reading.results import Histograms, Series
from nethook.runs.reading.run import Run
from nethook.sinks.bins import bin_edges
from nethook.sinks.histograms import SHOWN
from nethook.sinks.tags import COLUMNS, loss_tag, scalar_tag, series_tag
from nethook.sinks.trackers.tensorboard import add_histogram, event_writer

_CHUNK: Final = 64
_POINTS: Final = 1000  # of a series: TensorBoard itself shows no more of a tag


def to_tensorboard(run: Run, folder: Path) -> list[Path]:
    """One event file. A window, or a span of histograms, is a point at its last step."""
    started = run.info.get("started")
    base = float(started) if isinstance(started, int | float) else 0.0
    with event_writer(folder, flush_secs=600) as writer:
        for name, scalar in run.scalars.items():
            for step, time, value in zip(
                scalar.step.tolist(), scalar.time.tolist(), scalar.value.tolist(), strict=True
            ):
                writer.add_scalar(scalar_tag(name), value, step, walltime=time)
        for loss in shown_losses(run):
            if loss.counted != LOGGED:  # what was logged is among the scalars
                for step, value in zip(loss.step.tolist(), loss.value.tolist(), strict=True):
                    tag = loss_tag(loss.name, loss.phase)
                    writer.add_scalar(tag, value, step, walltime=base)
        keys = [(info.address, info.quantity) for info in run.catalogue]
        for phase in PHASES:
            for start in range(0, len(keys), _CHUNK):
                for series in run.many(keys[start : start + _CHUNK], phase):
                    _add_series(writer, series, base)
        for address, quantity in keys:
            if quantity in SHOWN:
                _add_histograms(writer, run.histograms(address, quantity), base)
    return sorted(folder.glob("events.out.tfevents.*"))


def _add_series(writer: Any, series: Series, time: float) -> None:
    one = series.quantity not in names.PER_ELEMENT  # one number per step: its mean is all there is
    there = np.flatnonzero(series.seen > 0)
    if len(there) > _POINTS:  # evenly, and with the last
        there = there[np.linspace(0, len(there) - 1, _POINTS).astype(np.int64)]
    steps = series.last_step[there].tolist()
    for column in ("mean",) if one else COLUMNS:
        tag = series_tag(series.address, series.quantity, series.phase, "" if one else column)
        for step, value in zip(steps, series[column][there].tolist(), strict=True):
            if not math.isnan(value) or column == "mean":
                writer.add_scalar(tag, value, step, walltime=time)


def _add_histograms(writer: Any, histograms: Histograms, time: float) -> None:
    tag = series_tag(histograms.address, histograms.quantity, histograms.phase)
    for step, counts in zip(histograms.last_step.tolist(), histograms.counts, strict=True):
        add_histogram(
            writer, tag, counts, bin_edges(), step, values=histograms.values, walltime=time
        )
