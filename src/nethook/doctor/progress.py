"""Whether a run is doing its job: does its loss fall, beyond its own noise?

A healthy loss curve outweighs an odd profile. Rules about symptoms ask here before they speak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nethook.doctor.history import Curve, Floats, History

ENOUGH: Final = 12
"""Windows below which nothing is said about a trend."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How a loss went. Values are medians over a tenth of the run, at least five windows."""

    start: float
    end: float
    best: float
    noise: float  # spread of the loss around its own trend
    fell: float  # (start - end) in units of the loss's own scale
    finite: bool

    @property
    def improves(self) -> bool:
        """It fell by more than its noise, and by more than a fiftieth of its scale."""
        return self.finite and self.fell > 0.02 and self.start - self.end > self.noise

    @property
    def does_its_job(self) -> bool:
        """It fell by a good part, and did not come back up."""
        return (
            self.improves
            and self.fell > 0.15
            and self.end - self.best < 0.5 * (self.start - self.best)
        )

    @property
    def diverges(self) -> bool:
        """It ends above its start, beyond its noise, or is not finite."""
        return not self.finite or self.end - self.start > max(
            2 * self.noise, 0.05 * abs(self.start)
        )


def progress_of(curve: Curve) -> Progress | None:
    """How a loss went; None where there is too little of it."""
    if len(curve) < ENOUGH:
        return None
    value = curve.value
    finite = np.isfinite(value)
    if finite.sum() < ENOUGH // 2:
        return Progress(np.nan, np.nan, np.nan, np.nan, 0.0, finite=False)
    kept = value[finite]
    width = max(5, len(kept) // 10)
    smooth = medians(kept, width)
    start, end, best = float(smooth[0]), float(smooth[-1]), float(smooth.min())
    noise = float(np.median(np.abs(kept - _trend(kept, width)))) * 1.4826
    scale = max(abs(start), noise, 1e-12)
    return Progress(start, end, best, noise, (start - end) / scale, bool(finite[-width:].all()))


def progress(history: History) -> Progress | None:
    """How the run's training loss went; None where there is none, too little, or several.

    Losses that play against each other (a GAN's) have no common direction, so none is judged.
    """
    curves = [curve for curve in history.losses() if len(curve) >= ENOUGH]
    if len(curves) != 1:
        return None
    return progress_of(curves[0])


def medians(values: Floats, width: int) -> Floats:
    """The median of each stretch of `width` values, the last one full."""
    starts = range(0, max(1, len(values) - width + 1), max(1, width // 2))
    found = [np.median(values[begin : begin + width]) for begin in starts]
    found[-1] = np.median(values[-width:])
    return np.asarray(found)


def _trend(values: Floats, width: int) -> Floats:
    """A running median, as long as the values."""
    padded = np.concatenate((values[: width // 2][::-1], values, values[-(width // 2) :][::-1]))
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)
    trend: Floats = np.median(windows[: len(values)], axis=1)
    return trend
