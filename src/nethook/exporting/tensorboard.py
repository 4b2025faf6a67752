"""A run as an event file of TensorBoard: scalars, numbers of series, histograms."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from nethook.errors import MissingLibraryError
from nethook.runs import names
from nethook.runs.format.schema import PHASES
from nethook.runs.reading.results import Histograms, Series
from nethook.runs.reading.run import Run
from nethook.runs.reading.shown_losses import LOGGED, shown_losses
from nethook.stats.fields import magnitude_edges

_CHUNK: Final = 64
_POINTS: Final = 1000  # of a series: TensorBoard itself shows no more of a tag
_COLUMNS: Final = ("mean", "std", "min", "max", "zero_share", "nonfinite_share")
_HISTOGRAMS: Final = (names.OUTPUTS, names.GRADS, names.PARAMS, names.PARAM_GRADS, names.UPDATES)


def to_tensorboard(run: Run, folder: Path) -> list[Path]:
    """One event file. A window, or a span of histograms, is a point at its last step."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingLibraryError(
            "an event file is written with tensorboard, which is not installed: "
            "pip install 'nethook[export]'"
        ) from None
    started = run.info.get("started")
    base = float(started) if isinstance(started, int | float) else 0.0
    with SummaryWriter(log_dir=str(folder), max_queue=1000, flush_secs=600) as writer:
        for name, scalar in run.scalars.items():
            for step, time, value in zip(
                scalar.step.tolist(), scalar.time.tolist(), scalar.value.tolist(), strict=True
            ):
                writer.add_scalar(f"scalars/{name}", value, step, walltime=time)
        for loss in shown_losses(run):
            if loss.counted != LOGGED:  # what was logged is among the scalars
                for step, value in zip(loss.step.tolist(), loss.value.tolist(), strict=True):
                    tag = f"{loss.label}, {loss.counted}/{loss.name}"
                    writer.add_scalar(tag, value, step, walltime=base)
        keys = [(info.address, info.quantity) for info in run.catalogue]
        for phase in PHASES:
            for start in range(0, len(keys), _CHUNK):
                for series in run.many(keys[start : start + _CHUNK], phase):
                    _add_series(writer, series, base)
        for address, quantity in keys:
            if quantity in _HISTOGRAMS:
                _add_histograms(writer, run.histograms(address, quantity), base)
    return sorted(folder.glob("events.out.tfevents.*"))


def _tag(series: Series | Histograms) -> str:
    phase = "" if series.phase == "train" else f"{series.phase}/"
    return f"{phase}{series.quantity}/{series.address or '(model)'}"


def _add_series(writer: Any, series: Series, time: float) -> None:
    tag = _tag(series)
    one = series.quantity not in names.PER_ELEMENT  # one number per step: its mean is all there is
    there = np.flatnonzero(series.seen > 0)
    if len(there) > _POINTS:  # evenly, and with the last
        there = there[np.linspace(0, len(there) - 1, _POINTS).astype(np.int64)]
    steps = series.last_step[there].tolist()
    for column in ("mean",) if one else _COLUMNS:
        for step, value in zip(steps, series[column][there].tolist(), strict=True):
            if not math.isnan(value) or column == "mean":
                name = tag if one else f"{tag}.{column}"
                writer.add_scalar(name, value, step, walltime=time)


def _add_histograms(writer: Any, histograms: Histograms, time: float) -> None:
    sides = magnitude_edges()[1:]
    # The upper end of each bin, in ascending order; the last has none.
    limits = np.concatenate((-sides[::-1], [-0.0, 0.0], sides[:1], sides[1:], [sides[-1] * 2]))
    for step, counts in zip(histograms.last_step.tolist(), histograms.counts, strict=True):
        there = np.flatnonzero(counts)
        if not there.size:
            continue
        first, last = int(there[0]), int(there[-1]) + 1
        values = histograms.values[first:last]
        occupied = counts[first:last]
        writer.add_histogram_raw(
            _tag(histograms),
            min=float(values[0]),
            max=float(values[-1]),
            num=int(occupied.sum()),
            sum=float((values * occupied).sum()),
            sum_squares=float((values**2 * occupied).sum()),
            bucket_limits=limits[first:last].tolist(),
            bucket_counts=occupied.tolist(),
            global_step=step,
            walltime=time,
        )
