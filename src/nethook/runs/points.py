"""Scalars: the points (step, time, value) of a name, in packed chunks of 512."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nethook.runs.packing import Matrix, pack, unpack
from nethook.runs.schema import CHUNK, NUMBERS, number_of, scalar_key
from nethook.runs.texts import for_file


class Point(NamedTuple):
    """One value of a scalar: the step, seconds since the epoch, the value."""

    step: int
    time: float
    value: float


def pack_points(points: list[Point]) -> bytes:
    """Points as bytes: steps, and times in milliseconds, as differences from the point before."""
    table = np.array(points, dtype=np.float64)
    table[:, 1] = np.round(table[:, 1] * 1000)
    table[:, :2] = np.diff(table[:, :2], axis=0, prepend=table[:1, :2])
    return pack(table)


def unpack_points(data: object, first_step: int, first_time: float) -> Matrix:
    """The points of a chunk: (points, 3)."""
    table = unpack(data, columns=3, max_rows=CHUNK)
    table[:, 0] = first_step + np.cumsum(table[:, 0])
    table[:, 1] = first_time + np.cumsum(table[:, 1]) / 1000
    return table


@dataclass
class _Name:
    """A name, the chunk that is being filled, and how many points are kept (0: all)."""

    id: int
    keep: int
    chunk: int = 0
    points: list[Point] = field(default_factory=list)
    unwritten: bool = False


class ScalarTrack:
    """The scalars of a run, as they are written."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._names: dict[str, _Name] = {}
        for at, name, keep in connection.execute("SELECT id, name, keep FROM scalar_names"):
            last = connection.execute(
                "SELECT max(key) FROM scalars WHERE key >= ? AND key < ?",
                (scalar_key(at, 0), scalar_key(at + 1, 0)),
            ).fetchone()[0]
            # What follows is in a new chunk; a short one in the middle does no harm.
            chunk = 0 if last is None else number_of(last) + 1
            self._names[name] = _Name(at, keep, chunk)

    def add(self, name: str, point: Point, keep: int = 0) -> None:
        """One more point; with `keep` only that many of the last points stay in the file."""
        known = self._names.get(name) or self._begin(name, keep)
        known.points.append(point)
        known.unwritten = True
        if len(known.points) == CHUNK:
            self._put(known)
            known.points = []
            known.chunk = (known.chunk + 1) % NUMBERS
            if known.keep:
                # One chunk more than are needed, since the last one is only partly full.
                oldest = known.chunk - (known.keep + CHUNK - 1) // CHUNK
                self._connection.execute(
                    "DELETE FROM scalars WHERE key >= ? AND key < ?",
                    (scalar_key(known.id, 0), scalar_key(known.id, max(0, oldest))),
                )

    def write(self) -> None:
        """Write the chunks that are not full as they are now."""
        for known in self._names.values():
            if known.unwritten and known.points:
                self._put(known)

    def _begin(self, name: str, keep: int) -> _Name:
        written = for_file(name)
        if written not in self._names:
            self._names[written] = _Name(len(self._names), keep)
            self._connection.execute(
                "INSERT INTO scalar_names VALUES (?, ?, ?)",
                (self._names[written].id, written, keep),
            )
        return self._names[written]

    def _put(self, known: _Name) -> None:
        first = known.points[0]
        self._connection.execute(
            "INSERT OR REPLACE INTO scalars VALUES (?, ?, ?, ?)",
            (
                scalar_key(known.id, known.chunk),
                first.step,
                round(first.time, 3),
                pack_points(known.points),
            ),
        )
        known.unwritten = False
