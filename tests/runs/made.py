"""Runs made of known numbers: every value is kept, so that what a run says can be checked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from nethook.runs.writing.windowing import WindowClock
from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import BINS, INDEX, ZERO_BIN, empty_rows, magnitude_edges, merge_rows
from nethook.stats.sheet import Sheet

ELEMENTS = 12  # of one tensor
UNITS = 4


def values(series: int, step: int, seed: int = 0) -> np.ndarray:
    """The tensor of a series at a step: some zeros, a spread that grows, exact in float32."""
    random = np.random.default_rng((seed, series, step))
    drawn = random.normal(0.1 * series, 1 + 0.01 * step, ELEMENTS).astype(np.float32)
    drawn[random.random(ELEMENTS) < 0.2] = 0
    return drawn.astype(np.float64)


def histogram(data: np.ndarray) -> np.ndarray:
    """Counts of an array of finite numbers: each is looked for among the edges."""
    sides = np.searchsorted(magnitude_edges(), np.abs(data), side="right") * (data != 0)
    return np.bincount(ZERO_BIN + sides * np.sign(data).astype(int), minlength=BINS)


def row(data: np.ndarray) -> np.ndarray:
    """The summary of an array of finite numbers, by numpy."""
    made = empty_rows(1)[0]
    fields = {
        "tensors": 1,
        "count": data.size,
        "zeros": (data == 0).sum(),
        "mean": data.mean(),
        "m2": ((data - data.mean()) ** 2).sum(),
        "min": data.min(),
        "max": data.max(),
        "binned": data.size,
    }
    for name, number in fields.items():
        made[INDEX[name]] = number
    return made


def fold(window: Sheet, step: int, rows: Iterable[int], seed: int = 0) -> None:
    """Fold one step of some series into a window."""
    for series in rows:
        data = values(series, step, seed)
        fresh = window.seen[series] == 0
        window.rows[series] = row(data) if fresh else merge_rows(window.rows[series], row(data))
        window.histograms[series] += histogram(data)
        bits = window.bits_of(series)
        bits |= (np.abs(data[: bits.size]) > 0.5).astype(np.uint8)
        window.seen[series] += 1
    window.add_step(step)


def write_run(
    path: Path,
    steps: int = 20,
    series: int = 3,
    *,
    seed: int = 0,
    close: bool = True,
    measured: Iterable[int] | None = None,
    **options: object,
) -> RunWriter:
    """A run of some steps: layer0, layer1, …, each with outputs that have units."""
    measured = range(series) if measured is None else measured
    options = {"flush_every": 0.05, "capacity": 10_000, **options}
    writer = RunWriter(path, **options)
    for at in range(series):
        writer.add_site(f"layer{at}", "Linear", {"shape": [ELEMENTS]})
        writer.add_series(f"layer{at}", "outputs", units=UNITS)
    window, clock = writer.window(), WindowClock(writer.next_step)
    for step in range(writer.next_step, writer.next_step + steps):
        fold(window, step, measured, seed)
        writer.log("loss", 1.0 / (1 + step), step)
        if clock.ends_with(step):
            window = writer.submit(window)
            clock.open(step + 1)
    if close:
        writer.close(window)
    return writer


def loss_point(
    step: int,
    value: float,
    samples: float,
    batches: float = 1,
    divided: float = 0.0,
    total: float | None = None,
) -> tuple[float, ...]:
    """A point of a loss, as watching writes it."""
    total = value * samples if total is None else total
    return (step, 1e9 + step, value, samples, batches, divided, total, value * batches)
