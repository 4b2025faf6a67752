"""Scalars: the points of a name, in packed chunks of 512.

A point is (step, time, value). Those of losses have more columns, listed in `LOSS`. Where only the
last points of a name are kept, what is older is in buckets, which are points too: see `BUCKET`.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np

from nethook.errors import NotARunError
from nethook.runs.format.packing import Matrix, pack, unpack_many
from nethook.runs.format.schema import CHUNK, NUMBERS, number_of, scalar_key
from nethook.runs.format.texts import for_file

Points = Sequence[tuple[float, ...]]
"""Values of a scalar: of each the step, seconds since the epoch, the value, and what else."""

PLAIN: Final = ("step", "time", "value")
LOSS: Final = (*PLAIN, "samples", "batches", "divided", "sum", "batch_sum")
"""A point of a loss.

    value      of the step, or of the evaluation pass
    samples    that its batches had; NaN where that is not known
    batches    that it is made of
    divided    what each of them was divided by, where `value` is the sum of divided losses; else 0
    sum        over samples, undivided; NaN where their number is not known
    batch_sum  over batches, undivided
"""
BUCKET: Final = (
    *("step", "time", "mean", "min", "max", "first_step", "first", "points"),
    *("samples", "batches", "sum", "batch_sum"),
)
"""What is left of points that are no longer kept.

`step` is the last of its steps and `first` the first of its values; mean, min and max are over
values that are finite; the last four are sums.
"""

BUCKETED: Final = 64
"""Points of one bucket."""

_MS, _VALUE = 1, 2
_SAMPLES, _BATCHES, _DIVIDED, _SUM, _BATCH_SUM = range(3, 8)


def pack_points(table: Matrix, worth: float = 0.97) -> bytes:
    """Points as bytes: of steps and times (milliseconds) what they have grown by.

    Of the sums of a loss it is the difference from what value, samples and batches say, which is
    zero nearly always, and takes no room then.
    """
    made = table.copy()
    made[:, _MS] *= 1000
    np.rint(made[:, _MS], out=made[:, _MS])
    made[1:, :2] -= made[:-1, :2].copy()
    made[0, :2] = 0
    if made.shape[1] == len(LOSS):
        for column, usual in zip((_SUM, _BATCH_SUM), _usual_sums(table), strict=True):
            with np.errstate(invalid="ignore"):
                rest = table[:, column] - usual
            same = (table[:, column] == usual) | (np.isnan(table[:, column]) & np.isnan(usual))
            made[:, column] = np.where(same, 0.0, rest)
    return pack(made, worth)


def unpack_points(data: object, first_step: int, first_time: float) -> Matrix:
    """The points of a chunk: (points, columns)."""
    return unpack_chunks([(first_step, first_time, data)])[0]


def unpack_chunks(chunks: Sequence[tuple[int, float, object]]) -> list[Matrix]:
    """The points of many chunks, each of which has its own columns."""
    by_columns: dict[int, list[int]] = {}
    for index, (_, _, data) in enumerate(chunks):
        columns = data[0] if isinstance(data, bytes) and data else 0
        if columns not in (len(PLAIN), len(LOSS), len(BUCKET)):
            raise NotARunError(f"a chunk of points has {columns} columns, which none has")
        by_columns.setdefault(columns, []).append(index)
    tables: list[Any] = [None] * len(chunks)
    for columns, which in by_columns.items():
        records = [chunks[index][2] for index in which]
        for alike, matrices in unpack_many(records, columns=columns, max_rows=CHUNK):
            for place, table in zip(alike, matrices, strict=True):
                first_step, first_time, _ = chunks[which[place]]
                tables[which[place]] = _restored(table, first_step, first_time)
    return tables


def _restored(table: Matrix, first_step: int, first_time: float) -> Matrix:
    table[:, 0] = first_step + np.cumsum(table[:, 0])
    table[:, _MS] = first_time + np.cumsum(table[:, _MS]) / 1000
    if table.shape[1] == len(LOSS):
        for column, usual in zip((_SUM, _BATCH_SUM), _usual_sums(table), strict=True):
            rest = table[:, column]
            with np.errstate(invalid="ignore"):
                table[:, column] = np.where(rest == 0, usual, usual + rest)
    return table


def _usual_sums(table: Matrix) -> tuple[Matrix, Matrix]:
    """The sums over samples and batches, where all batches are of one size and counted alike."""
    value = table[:, _VALUE]
    with np.errstate(invalid="ignore", over="ignore"):
        times = np.where(table[:, _DIVIDED] > 0, table[:, _DIVIDED], table[:, _BATCHES])
        return value * table[:, _SAMPLES], value * times


def as_losses(table: Matrix) -> Matrix:
    """Points with the columns of a loss; plain ones say nothing of samples, and are one batch."""
    if table.shape[1] == len(LOSS):
        return table
    wide = np.full((len(table), len(LOSS)), np.nan)
    wide[:, : len(PLAIN)] = table[:, : len(PLAIN)]
    wide[:, _BATCHES], wide[:, _DIVIDED], wide[:, _BATCH_SUM] = 1, 0, table[:, _VALUE]
    return wide


def buckets_of(table: Matrix) -> Matrix:
    """Points put together, `BUCKETED` of them in each bucket."""
    wide = as_losses(table)
    starts = np.arange(0, len(wide), BUCKETED)
    ends = np.append(starts[1:], len(wide)) - 1
    value = wide[:, _VALUE]
    finite = np.isfinite(value)
    count = np.add.reduceat(finite, starts, dtype=np.int64)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        total = np.add.reduceat(np.where(finite, value, 0.0), starts)
        low = np.minimum.reduceat(np.where(finite, value, np.inf), starts)
        high = np.maximum.reduceat(np.where(finite, value, -np.inf), starts)
        sums = np.add.reduceat(wide[:, [_SAMPLES, _BATCHES, _SUM, _BATCH_SUM]], starts)
        # A mean lies between the least and the greatest, whatever the rounding.
        mean = np.clip(total / count, low, high)
    some = count > 0
    mean, low, high = (np.where(some, column, np.nan) for column in (mean, low, high))
    return np.column_stack(
        [wide[ends, 0], wide[ends, 1], mean, low, high, wide[starts, 0], value[starts],
         ends - starts + 1, sums]
    )  # fmt: skip


class _Name:
    """A name, the chunk that is being filled, and how many points are kept (0: all)."""

    def __init__(self, name_id: int, keep: int, older: str, chunk: int = 0) -> None:
        self.id = name_id
        self.keep = keep
        self.older = older  # the name of its buckets; "" where there are none
        self.chunk = chunk
        self.points = np.empty((CHUNK, len(PLAIN)))
        self.count = 0  # of the points of this chunk
        self.unwritten = False

    def begin_with(self, table: Matrix) -> None:
        """The chunk that is being filled has these points so far."""
        self.points = np.empty((CHUNK, table.shape[1]))
        self.points[: len(table)] = table
        self.count = len(table)


class ScalarTrack:
    """The scalars of a run, as they are written.

    Arguments:
        connection: of the file.
        older: name of a scalar -> the name of the buckets of what is no longer kept; "" for
            none.
    """

    def __init__(
        self, connection: sqlite3.Connection, older: Callable[[str], str] | None = None
    ) -> None:
        self._connection = connection
        self._older = older or (lambda _: "")
        self._names: dict[str, _Name] = {}
        stored = connection.execute("SELECT id, name, keep FROM scalar_names").fetchall()
        for name_id, name, keep in stored:
            self._names[name] = _Name(name_id, keep, self._older(name))
            self._go_on(self._names[name])

    def _go_on(self, track: _Name) -> None:
        """The chunk that is being filled is the last one of the file, if there is room in it."""
        last = self._connection.execute(
            "SELECT key, first_step, first_time, data FROM scalars "
            "WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT 1",
            (scalar_key(track.id, 0), scalar_key(track.id + 1, 0)),
        ).fetchone()
        track.chunk = track.count = 0
        if last is not None:
            chunk = unpack_points(last[3], last[1], last[2])
            track.chunk = number_of(last[0])
            if len(chunk) < CHUNK:
                track.begin_with(chunk)
            else:
                track.chunk += 1

    def add(self, name: str, points: Points, keep: int = 0) -> None:
        """More points; with `keep` only that many of the last ones stay in the file."""
        if points:
            # Three times quicker than what numpy makes of a list of tuples.
            table = np.frombuffer(array("d", chain.from_iterable(points)))
            self._add_table(name, table.reshape(-1, len(points[0])), keep)

    def _add_table(self, name: str, table: Matrix, keep: int) -> None:
        track = self._names.get(name) or self._begin(name, keep)
        if keep > track.keep > 0:  # a file of an older version kept fewer
            track.keep = keep
            self._connection.execute(
                "UPDATE scalar_names SET keep = ? WHERE id = ?", (keep, track.id)
            )
        if table.shape[1] != track.points.shape[1]:
            if track.count == 0:
                track.begin_with(table[:0])
            else:
                track.begin_with(as_losses(track.points[: track.count]))
                table = as_losses(table)
        while len(table):
            some = table[: CHUNK - track.count]
            track.points[track.count : track.count + len(some)] = some
            track.count += len(some)
            track.unwritten = True
            table = table[len(some) :]
            if track.count == CHUNK:
                self._put(track, worth=0.97)
                self._next_chunk(track)

    def _next_chunk(self, track: _Name) -> None:
        track.count = 0
        track.chunk = (track.chunk + 1) % NUMBERS
        if not track.keep:
            return
        # One chunk more than are needed, since the last one is only partly full.
        oldest = track.chunk - (track.keep + CHUNK - 1) // CHUNK
        if oldest <= 0:
            return
        between = (scalar_key(track.id, 0), scalar_key(track.id, oldest))
        if track.older:
            chunks = self._connection.execute(
                "SELECT first_step, first_time, data FROM scalars WHERE key >= ? AND key < ? "
                "ORDER BY key",
                between,
            ).fetchall()
            for chunk in unpack_chunks(chunks):
                self._add_table(track.older, buckets_of(chunk), 0)
        self._connection.execute("DELETE FROM scalars WHERE key >= ? AND key < ?", between)

    def write(self) -> None:
        """Write the chunks that are not full as they are now."""
        for track in self._names.values():
            if track.unwritten and track.count:
                # It will be written again a moment later: not worth compressing.
                self._put(track, worth=0)

    def _begin(self, name: str, keep: int) -> _Name:
        written = for_file(name)
        if written not in self._names:
            self._names[written] = _Name(len(self._names), keep, self._older(name))
            self._connection.execute(
                "INSERT INTO scalar_names VALUES (?, ?, ?)",
                (self._names[written].id, written, keep),
            )
        return self._names[written]

    def _put(self, track: _Name, worth: float) -> None:
        points = track.points[: track.count]
        _put_chunk(self._connection, scalar_key(track.id, track.chunk), points, worth)
        track.unwritten = False

    def cut(self, name: str, step: int) -> None:
        """Forget what the file has of a name from a step on."""
        if name in self._names:
            cut_points(self._connection, self._names[name].id, step)
            self._go_on(self._names[name])


def cut_points(connection: sqlite3.Connection, name: int, step: int) -> int | None:
    """Drop the points of a name from a step on; the step of the last one that stays, if any."""
    end = scalar_key(name + 1, 0)
    while True:
        chunk = connection.execute(
            "SELECT key, first_step, first_time, data FROM scalars WHERE key >= ? AND key < ? "
            "ORDER BY key DESC LIMIT 1",
            (scalar_key(name, 0), end),
        ).fetchone()
        if chunk is None:
            return None
        end, first_step, first_time, data = chunk
        points = unpack_points(data, first_step, first_time)
        kept = points[points[:, 0] < step]
        if len(kept) < len(points):
            connection.execute("DELETE FROM scalars WHERE key = ?", (end,))
            if len(kept):
                _put_chunk(connection, end, kept, worth=0.97)
        if len(kept):  # points are in the order of steps: every chunk before is kept whole
            return int(kept[-1, 0])


def _put_chunk(connection: sqlite3.Connection, key: int, points: Matrix, worth: float) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO scalars VALUES (?, ?, ?, ?)",
        (
            key,
            int(points[0, 0]),
            round(float(points[0, 1]), 3),
            pack_points(points, worth),
        ),
    )
