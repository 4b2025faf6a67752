"""Scalars: the points (step, time, value) of a name, in packed chunks of 512."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Sequence
from itertools import chain

import numpy as np

from nethook.runs.format.packing import Matrix, pack, unpack
from nethook.runs.format.schema import CHUNK, NUMBERS, number_of, scalar_key
from nethook.runs.format.texts import for_file

Points = Sequence[tuple[int, float, float]]
"""Values of a scalar: of each the step, seconds since the epoch, and the value."""


def pack_points(table: Matrix, worth: float = 0.97) -> bytes:
    """Points (points, 3) as bytes: of steps and times (milliseconds) what they have grown by."""
    made = table.copy()
    made[:, 1] *= 1000
    np.rint(made[:, 1], out=made[:, 1])
    made[1:, :2] -= made[:-1, :2].copy()
    made[0, :2] = 0
    return pack(made, worth)


def unpack_points(data: object, first_step: int, first_time: float) -> Matrix:
    """The points of a chunk: (points, 3)."""
    table = unpack(data, columns=3, max_rows=CHUNK)
    table[:, 0] = first_step + np.cumsum(table[:, 0])
    table[:, 1] = first_time + np.cumsum(table[:, 1]) / 1000
    return table


class _Name:
    """A name, the chunk that is being filled, and how many points are kept (0: all)."""

    def __init__(self, name_id: int, keep: int, chunk: int = 0) -> None:
        self.id = name_id
        self.keep = keep
        self.chunk = chunk
        self.points = np.empty((CHUNK, 3))
        self.count = 0  # of the points of this chunk
        self.unwritten = False


class ScalarTrack:
    """The scalars of a run, as they are written."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._names: dict[str, _Name] = {}
        for name_id, name, keep in connection.execute("SELECT id, name, keep FROM scalar_names"):
            last = connection.execute(
                "SELECT max(key) FROM scalars WHERE key >= ? AND key < ?",
                (scalar_key(name_id, 0), scalar_key(name_id + 1, 0)),
            ).fetchone()[0]
            # What follows is in a new chunk; a short one in the middle does no harm.
            chunk = 0 if last is None else number_of(last) + 1
            self._names[name] = _Name(name_id, keep, chunk)

    def add(self, name: str, points: Points, keep: int = 0) -> None:
        """More points; with `keep` only that many of the last ones stay in the file."""
        if not points:
            return
        track = self._names.get(name) or self._begin(name, keep)
        # Three times quicker than what numpy makes of a list of tuples.
        table = np.frombuffer(array("d", chain.from_iterable(points))).reshape(-1, 3)
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
        if track.keep:
            # One chunk more than are needed, since the last one is only partly full.
            oldest = track.chunk - (track.keep + CHUNK - 1) // CHUNK
            self._connection.execute(
                "DELETE FROM scalars WHERE key >= ? AND key < ?",
                (scalar_key(track.id, 0), scalar_key(track.id, max(0, oldest))),
            )

    def write(self) -> None:
        """Write the chunks that are not full as they are now."""
        for track in self._names.values():
            if track.unwritten and track.count:
                # It will be written again a moment later: not worth compressing.
                self._put(track, worth=0)

    def _begin(self, name: str, keep: int) -> _Name:
        written = for_file(name)
        if written not in self._names:
            self._names[written] = _Name(len(self._names), keep)
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
