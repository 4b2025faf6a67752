"""One file of a run of many ranks: `nethook merge`.

Summaries merge exactly, so the layers of all ranks become one series each, with their coverage.
What each rank says about its own loop (losses, norms, fingerprints, learning rates) is kept beside
it, as `rank3/loss:train.py:42`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from nethook.errors import OptionError
from nethook.runs.format.points import LOSS
from nethook.runs.format.schema import PHASES
from nethook.runs.names import KEPT_STEPS, is_own_scalar, older_name
from nethook.runs.reading.losses.curve import LossCurve
from nethook.runs.reading.results import Scalar, Series
from nethook.runs.reading.run import Run, open_run
from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import INDEX

_WINDOWS: Final = 64
"""Windows that are in memory at once."""

_LEFT_OUT: Final = ("rank", "world_size", "launch", "finished", "sessions", "layout")

Progress = Callable[[int, int], None]


def merge_run(path: str | Path, to: str | Path, progress: Progress | None = None) -> Path:
    """Write all ranks of a run as one file.

    Arguments:
        path: the file of any rank.
        to: the new file.
        progress: is told how many of how many windows are done.

    Returns:
        The new file.

    Raises:
        OptionError: the run is of one rank, or one of its ranks still writes.
    """
    with open_run(path, ranks="all") as run:
        states = {rank.state for rank in run.ranks}
        if len(run.sampled) < 2:
            raise OptionError(f"`run` must have several ranks; got {str(path)!r}, which has one.")
        if "open" in states:
            raise OptionError(
                f"`run` must have ended; got {str(path)!r}, which is being written. Merge it later."
            )
        facts = {name: fact for name, fact in run.info.items() if name not in _LEFT_OUT}
        merged = {"ranks": len(run.sampled), "world_size": run.world_size}
        with RunWriter(to, info={**facts, "merged": merged}) as writer:
            for site in run.sites:
                writer.add_site(site.address, site.kind, site.info)
            for info in run.catalogue:
                writer.add_series(info.address, info.quantity, units=info.units, info=info.info)
            _copy_windows(run, writer, progress)
            _copy_notes(run, writer)
            writer.flush(600)
            _check(writer)
            return writer.path


def _check(writer: RunWriter) -> None:
    """End where nothing can be written any more, such as on a full disk."""
    if writer.problem is not None:
        raise OptionError(
            f"`to` must be a file that can be written; got {str(writer.path)!r}. {writer.problem}"
        )


def _copy_windows(run: Run, writer: RunWriter, progress: Progress | None) -> None:
    keys = [(info.address, info.quantity) for info in run.catalogue]
    if not keys:
        return
    axes = {phase: run.many(keys[:1], phase)[0] for phase in PHASES}
    total, done = sum(len(axis) for axis in axes.values()), 0
    for phase, axis in axes.items():
        spans = _Spans(run, keys, phase)
        for begin in range(0, len(axis), _WINDOWS):
            end = min(begin + _WINDOWS, len(axis))
            steps = int(axis.first_step[begin]), int(axis.last_step[end - 1])
            block = run.many(keys, phase, between=steps)
            for place in range(end - begin):
                _submit(writer, phase, block, place, spans, last=begin + place == len(axis) - 1)
            done += end - begin
            if progress is not None:
                progress(done, total)


def _submit(
    writer: RunWriter, phase: str, block: list[Series], place: int, spans: _Spans, *, last: bool
) -> None:
    window = writer.window(phase)
    for row, series in enumerate(block):
        window.rows[row] = series.rows[place]
        window.seen[row] = series.seen[place]
    head = block[0]
    # Steps of all ranks: `seen` counts those of all ranks, too.
    steps = max(int(series.steps[place]) for series in block)
    window.first_step, window.last_step = int(head.first_step[place]), int(head.last_step[place])
    window.steps = steps
    spans.fill(window, up_to=None if last else window.last_step)
    # A reader may have merged windows of ranks that are not alike; the writer merges none.
    while not writer.hand_over(window):
        writer.flush(60)
        _check(writer)


class _Spans:
    """Histograms and unit bits of one phase, each in the window that its span ends in."""

    def __init__(self, run: Run, keys: list[tuple[str, str]], phase: str) -> None:
        self._waiting: list[tuple[int, int, Any, Any]] = []
        binned = INDEX["binned"]
        units = {(info.address, info.quantity): info.units for info in run.catalogue}
        for row, key in enumerate(keys):
            if not run.many([key], phase)[0].rows[:, binned].any():
                continue
            histograms = run.histograms(*key, phase)
            bits = run.units(*key, phase).active if units[key] else None
            for span, counts in enumerate(histograms.counts):
                there = np.flatnonzero(counts)
                if len(there):
                    own = None if bits is None or span >= len(bits) else bits[span]
                    step = int(histograms.last_step[span])
                    self._waiting.append((step, row, (there, counts[there]), own))
        self._waiting.sort(key=lambda entry: entry[0], reverse=True)

    def fill(self, window: Any, *, up_to: int | None) -> None:
        """Put everything into a window that belongs to its steps or earlier ones."""
        while self._waiting and (up_to is None or self._waiting[-1][0] <= up_to):
            _, row, (bins, counts), bits = self._waiting.pop()
            window.histograms[row, bins] += counts
            if bits is not None:
                window.bits_of(row)[:] |= bits


def _copy_notes(run: Run, writer: RunWriter) -> None:
    for name, scalar in run.scalars.items():
        _copy_scalar(writer, name, scalar)
    for name, of_ranks in run.scalars_by_rank("").items():
        if is_own_scalar(name):
            for rank, scalar in of_ranks.items():
                _copy_scalar(writer, f"rank{rank}/{name}", scalar)
    for loss in run.losses:
        writer.loss(loss.name, loss.step, {**loss.data, "rank": loss.rank}, loss.phase)
    for event in run.events:
        data = {**event.data, "rank": event.rank}
        writer.event(event.kind, event.step, event.message, event.address, data)
    for snapshots in run.snapshots.values():
        for snapshot in snapshots:
            writer.snapshot(snapshot.address, snapshot.step, snapshot.values)
    writer.findings(list(run.findings))


def _copy_scalar(writer: RunWriter, name: str, scalar: Scalar) -> None:
    columns = [scalar.step, scalar.time, scalar.value]
    if isinstance(scalar, LossCurve):
        columns += [getattr(scalar, column) for column in LOSS[3:]]
    points = [tuple(float(number) for number in row) for row in zip(*columns, strict=True)]
    if points:
        writer.log_points(name, points, keep=KEPT_STEPS if older_name(name) else 0)
