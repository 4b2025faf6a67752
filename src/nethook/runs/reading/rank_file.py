"""One file of a run, read into numpy columns: every number in it is checked on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nethook.errors import NotARunError
from nethook.runs.format.levels import SHOWN, Course, single, tail, unpack_courses
from nethook.runs.format.points import BUCKET, as_losses, unpack_chunks
from nethook.runs.format.records import COLUMNS, Basis, unpack_rows
from nethook.runs.format.schema import (
    BLOCK,
    CHUNK,
    HISTOGRAM_BLOCK,
    LEVELS,
    MAX_ROWS,
    MAX_SERIES,
    MAX_SNAPSHOT,
    MAX_UNITS,
    MAX_WINDOWS,
    NUMBERS,
    SPANS,
    key,
    number_of,
    scalar_key,
)
from nethook.runs.format.sparse import unpack_bits, unpack_counts
from nethook.runs.format.texts import from_file, from_json, name_from_file
from nethook.runs.reading.open_files import OpenFiles
from nethook.runs.reading.safe_sqlite import GuardedFile
from nethook.runs.reading.snapshots import unpack_snapshot
from nethook.stats.fields import BINS, WIDTH, Matrix, empty_rows

Integers = npt.NDArray[np.int64]

# The most bytes that a packed record of each kind can have: nothing larger is even loaded.
_RECORD: Final = BLOCK * (len(COLUMNS) + 16) * 8 + 1024
_OVERVIEW: Final = BLOCK * (1 + 3 * len(SHOWN)) * 8 + 1024
_HISTOGRAM: Final = HISTOGRAM_BLOCK * BINS * 9 + 1024
_LARGEST: Final = 1 << 53  # steps and counts: exact as float64 too
_POINTS: Final = CHUNK * len(BUCKET) * 8 + 1024


@dataclass(frozen=True)
class Site:
    """A site of the model: its address, its type, and what else is known, as plain data."""

    address: str
    kind: str
    info: dict[str, Any]


@dataclass(frozen=True)
class SeriesInfo:
    """A series of a run: which site, which quantity, units (0: none) and elements of a tensor."""

    address: str
    quantity: str
    units: int
    elements: int
    info: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows (or spans) of steps, as columns."""

    first_step: Integers
    last_step: Integers
    steps: Integers
    closed: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.first_step)

    def equal(self, other: Windows) -> bool:
        """Whether these are the same windows in the same state."""
        return (
            np.array_equal(self.last_step, other.last_step)
            and np.array_equal(self.steps, other.steps)
            and np.array_equal(self.closed, other.closed)
        )


class RankFile:
    """What one rank wrote."""

    def __init__(self, path: Path, files: OpenFiles | None = None) -> None:
        self.path = path
        self._file = GuardedFile(path, files=files)
        self._series: tuple[object, tuple[list[SeriesInfo], Basis]] | None = None
        self._ids: tuple[object, dict[tuple[str, str], int]] | None = None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # The catalogue

    def info(self) -> dict[str, Any]:
        """What ran."""
        entries = self._file.rows("SELECT key, value FROM info ORDER BY key", most=10_000)
        return {name_from_file(name): from_json(value) for name, value in entries}

    def facts(self, *names: str) -> dict[str, Any]:
        """Some facts about what ran, by name."""
        return self._file.facts(*names)

    def sites(self) -> list[Site]:
        """The sites, in the order in which they were added."""
        query = "SELECT address, kind, info FROM sites ORDER BY id"
        stored = self._file.rows(query, most=MAX_SERIES)
        return [
            Site(name_from_file(a), name_from_file(kind), _mapping(info))
            for a, kind, info in stored
        ]

    def series(self) -> tuple[list[SeriesInfo], Basis]:
        """The series in the order of their rows, and what their records are relative to.

        Series are added and learn their basis once; while neither happens they are not read again.
        """
        state = self._file.rows(
            "SELECT count(*), total(elements), total(binned) FROM series", most=1
        )
        if self._series is None or self._series[0] != state:
            self._series = (state, self._read_series())
        return self._series[1]

    def ids(self) -> dict[tuple[str, str], int]:
        """Address and quantity of each series -> its row."""
        infos, _ = self.series()
        if self._ids is None or self._ids[0] is not infos:
            rows = {(info.address, info.quantity): row for row, info in enumerate(infos)}
            self._ids = (infos, rows)
        return self._ids[1]

    def _read_series(self) -> tuple[list[SeriesInfo], Basis]:
        query = "SELECT id, address, quantity, units, elements, binned, info FROM series"
        basis = Basis()
        infos: list[SeriesInfo] = []
        for series_id, address, quantity, *numbers, info in self._file.rows(
            f"{query} ORDER BY id", most=MAX_SERIES
        ):
            units, elements, binned = (_whole(number) for number in numbers)
            if _whole(series_id) != len(infos) or not 0 <= units <= MAX_UNITS:
                raise NotARunError(f"{str(self.path)!r} has series that are not in order.")
            basis.add(units, elements, binned)
            infos.append(
                SeriesInfo(
                    name_from_file(address),
                    name_from_file(quantity),
                    units,
                    elements,
                    _mapping(info),
                )
            )
        return infos, basis

    def columns(self) -> tuple[str, ...]:
        """The columns of this file's records."""
        layout = self.facts("layout").get("layout")
        columns = layout.get("columns") if isinstance(layout, dict) else None
        if not isinstance(columns, list) or not 0 < len(columns) < len(COLUMNS) + 16:
            raise NotARunError(f"{str(self.path)!r} does not say how its records are laid out.")
        return tuple(str(name) for name in columns)

    # Windows

    def windows(self, phase: str) -> Windows:
        """The windows of a phase. The last one may be open still."""
        return self._windows(phase, None)[1]

    def last_step(self) -> int:
        """The last step of training that is kept; -1 where there is none."""
        query = "SELECT max(last_step) FROM windows WHERE key < ?"
        ((last,),) = self._file.rows(query, (key("eval"),), most=1)
        return -1 if last is None else _whole(last)

    def _windows(self, phase: str, between: tuple[int, int] | None) -> tuple[int, Windows]:
        """The number of the first window of those that have steps in between, and all of them."""
        first, last = between or (-_LARGEST, _LARGEST)
        stored = self._file.rows(
            "SELECT key, first_step, last_step, steps, closed FROM windows "
            "WHERE key >= ? AND key < ? AND last_step >= ? AND first_step <= ? ORDER BY key",
            (key(phase), key(phase, block=1), first, last),
            most=MAX_WINDOWS,
        )
        table = _table(stored, 5)
        begin = int(table[0, 0]) & (NUMBERS - 1) if between and len(table) else 0
        return begin, _windows(table, self.path, begin)

    def rows(
        self, phase: str, ids: Sequence[int], between: tuple[int, int] | None = None
    ) -> tuple[Windows, Matrix]:
        """The windows, and rows (windows, series, COLUMNS); where there is none, an empty one.

        A window that is open is written again and again: its steps and its numbers are read in one
        query, so that they belong together. Several blocks of series are several queries, which are
        repeated if a window was written in between.
        """
        columns = self.columns()
        for _ in range(20):
            _, basis = self.series()
            begin, windows = self._windows(phase, between)
            shape = (len(windows), len(ids))
            rows = np.concatenate((empty_rows(*shape), np.zeros((*shape, 1))), axis=-1)
            if all(
                self._block_rows(phase, block, places, (begin, windows), (rows, basis, columns))
                for block, places in _by_block(ids)
            ):
                break
        return windows, rows

    def _block_rows(
        self,
        phase: str,
        block: int,
        places: Integers,
        of: tuple[int, Windows],
        into: tuple[Matrix, Basis, Sequence[str]],
    ) -> bool:
        """Fill in the rows of one block; False if the windows are no longer those."""
        rows, basis, columns = into
        begin, windows = of
        first = key(phase) + begin
        stored = self._file.rows(
            "SELECT windows.key, first_step, last_step, steps, closed, "
            "CASE WHEN length(data) <= ? THEN data ELSE length(data) END "
            "FROM windows LEFT JOIN records ON records.key = windows.key + ? "
            "WHERE windows.key >= ? AND windows.key < ? ORDER BY windows.key",
            (_RECORD, key("train", block=block), first, first + len(windows)),
            most=MAX_WINDOWS,
        )
        if not windows.equal(_windows(_table([row[:5] for row in stored], 5), self.path, begin)):
            return False
        there = [(number, row[5]) for number, row in enumerate(stored) if row[5] is not None]
        for batch in _batches(there):
            for which, series, numbers in unpack_rows(batch[1], block, basis, columns):
                _place(rows, [batch[0][index] for index in which], places[series % BLOCK], numbers)
        return True

    def courses(
        self, phase: str, ids: Sequence[int], windows: int, level: int
    ) -> tuple[list[tuple[int, int]], Course]:
        """The course of some series: over which windows, and (parts, series, 3, SHOWN)."""
        _, basis = self.series()
        columns = self.columns()
        plan = tail(windows, level)
        parts = [
            (number * _width(finer), (number + 1) * _width(finer))
            for finer, first, end in plan
            for number in range(first, end)
        ]
        shape = (len(parts), len(ids), 3, len(SHOWN))
        courses = np.full(shape, np.nan, dtype=np.float32)  # of large runs many MB: made once
        done = 0
        for finer, first, end in plan:
            course = courses[done : done + end - first]
            done += end - first
            for block, places in _by_block(ids):
                table, size = ("overviews", _OVERVIEW) if finer else ("records", _RECORD)
                blobs = self._blobs(table, phase, block, end, size, level=finer, first=first)
                for numbers, data in _batches(blobs):
                    if finer:
                        parted = unpack_courses(data, block, len(basis))
                    else:
                        parted = (
                            (which, series, single(rows[..., :WIDTH]))
                            for which, series, rows in unpack_rows(data, block, basis, columns)
                        )
                    for which, series, members in parted:
                        rows_at = [numbers[index] - first for index in which]
                        _place(course, rows_at, places[series % BLOCK], members)
        return parts, courses

    # Histograms and units

    def spans(self, phase: str) -> tuple[Integers, Windows]:
        """Numbers and steps of the spans for which there are histograms."""
        stored = self._file.rows(
            "SELECT key, first_step, last_step, windows FROM spans "
            "WHERE key >= ? AND key < ? ORDER BY key",
            (key(phase), key(phase, block=1)),
            most=2 * SPANS,
        )
        table = _table(stored, 4)
        closed = np.ones(len(table), dtype=bool)
        steps = table[:, 2] - table[:, 1] + 1
        return table[:, 0] & (NUMBERS - 1), Windows(table[:, 1], table[:, 2], steps, closed)

    def histograms(self, phase: str, series: int, numbers: Integers) -> Integers:
        """Counts (spans, BINS) of one series."""
        counts = np.zeros((len(numbers), BINS), dtype=np.int64)
        places = {int(number): index for index, number in enumerate(numbers)}
        block, row = divmod(series, HISTOGRAM_BLOCK)
        for number, data in self._blobs("histograms", phase, block, NUMBERS, _HISTOGRAM):
            if number in places:
                counts[places[number]] = unpack_counts(data)[row]
        return counts

    def unit_bits(self, phase: str, series: int, numbers: Integers) -> npt.NDArray[np.bool_]:
        """Which units of a series were ever active: (spans, units)."""
        _, basis = self.series()
        block = series // HISTOGRAM_BLOCK
        first = block * HISTOGRAM_BLOCK
        total = sum(basis.units[first : first + HISTOGRAM_BLOCK])
        begin = sum(basis.units[first:series])
        units = basis.units[series]
        active = np.zeros((len(numbers), units), dtype=bool)
        places = {int(number): index for index, number in enumerate(numbers)}
        size = total // 8 + 1024
        for number, data in self._blobs("unit_bits", phase, block, NUMBERS, size):
            if number in places:
                bits = unpack_bits(data, total)
                active[places[number]] = bits[begin : begin + units] != 0
        return active

    # Notes

    def scalar_names(self) -> dict[str, tuple[int, int]]:
        """Name of a scalar -> its id, and how many points are kept (0: all)."""
        query = "SELECT id, name, keep FROM scalar_names ORDER BY id"
        names = self._file.rows(query, most=MAX_ROWS)
        return {
            name_from_file(name): (_small(name_id), _small(keep)) for name_id, name, keep in names
        }

    def scalar(self, name: int, keep: int) -> Matrix:
        """The points of a scalar: (points, 3), or with the columns of a loss or of buckets."""
        stored = self._file.rows(
            "SELECT first_step, first_time, CASE WHEN length(data) <= ? THEN data END FROM scalars "
            "WHERE key >= ? AND key < ? ORDER BY key",
            (_POINTS, scalar_key(name, 0), scalar_key(name + 1, 0)),
            most=MAX_ROWS,
        )
        chunks = unpack_chunks([(_whole(step), _real(time), data) for step, time, data in stored])
        if len({chunk.shape[1] for chunk in chunks}) > 1:  # begun by an older version
            chunks = [as_losses(chunk) for chunk in chunks]
        points = np.concatenate(chunks) if chunks else np.zeros((0, 3))
        return points[-keep:] if keep else points

    def losses(self) -> list[tuple[str, int, str, Any]]:
        """Loss records: name, step, phase, data."""
        query = "SELECT name, step, phase, data FROM losses ORDER BY id"
        stored = self._file.rows(query, most=MAX_ROWS)
        return [
            (name_from_file(name), _whole(step), name_from_file(phase), from_json(data))
            for name, step, phase, data in stored
        ]

    def events(self) -> list[tuple[int, float, str, str, str, Any, int]]:
        """Events: step, time, kind, address, message, data, repeats."""
        query = "SELECT step, time, kind, address, message, data, repeats FROM events ORDER BY id"
        return [
            (
                _whole(step),
                _real(when),
                name_from_file(kind),
                name_from_file(address),
                from_file(message),
                from_json(data),
                _whole(repeats),
            )
            for step, when, kind, address, message, data, repeats in self._file.rows(
                query, most=MAX_ROWS
            )
        ]

    def snapshots(self, address: str) -> list[tuple[int, npt.NDArray[np.float32]]]:
        """Outputs of a site that were kept: step, and the values."""
        written = self._snapshot_sites().get(address)
        if written is None:
            return []
        stored = self._file.rows(
            "SELECT step, shape, CASE WHEN length(data) <= ? THEN data END FROM snapshots "
            "WHERE address = ? ORDER BY id",
            (5 * MAX_SNAPSHOT, written),
            most=MAX_ROWS,
        )
        return [(_whole(step), unpack_snapshot(shape, data)) for step, shape, data in stored]

    def snapshot_sites(self) -> list[str]:
        """The sites of which there are snapshots."""
        return list(self._snapshot_sites())

    def _snapshot_sites(self) -> dict[str, str]:
        """Address as it is shown -> as it is written in the file."""
        if not self._file.rows("SELECT name FROM sqlite_master WHERE name = 'snapshots'", most=1):
            return {}  # a file of an older version
        addresses = self._file.rows("SELECT DISTINCT address FROM snapshots", most=MAX_SERIES)
        return {name_from_file(address): address for (address,) in addresses}

    def findings(self) -> list[dict[str, Any]]:
        """Findings, as plain data."""
        stored = self._file.rows("SELECT data FROM findings ORDER BY id", most=MAX_ROWS)
        return [_mapping(data) for (data,) in stored]

    def _blobs(
        self,
        table: str,
        phase: str,
        block: int,
        end: int,
        size: int,
        *,
        level: int = 0,
        first: int = 0,
    ) -> Iterator[tuple[int, bytes]]:
        """Number and data of the records of one block, from `first` to before `end`."""
        stored = self._file.rows(
            f"SELECT key, CASE WHEN length(data) <= ? THEN data END FROM {table} "
            "WHERE key >= ? AND key < ? ORDER BY key",
            (
                size,
                key(phase, first, block=block, level=level),
                key(phase, block=block, level=level) + end,
            ),
            most=MAX_WINDOWS,
        )
        for packed, data in stored:
            yield number_of(packed), data


def _windows(table: Integers, path: Path, begin: int = 0) -> Windows:
    if not np.array_equal(table[:, 0] & (NUMBERS - 1), np.arange(begin, begin + len(table))):
        raise NotARunError(f"{str(path)!r} has windows that are not in order.")
    return Windows(table[:, 1], table[:, 2], table[:, 3], table[:, 4] != 0)


def _width(level: int) -> int:
    """The windows that one record of a level stands for."""
    return LEVELS[level - 1] if level else 1


def _by_block(ids: Sequence[int]) -> Iterator[tuple[int, Integers]]:
    """Each block that some series are in, and the place of each of its rows in `ids`, or −1."""
    blocks: dict[int, Integers] = {}
    for index, series in enumerate(ids):
        block = series // BLOCK
        if block not in blocks:
            blocks[block] = np.full(BLOCK, -1)
        blocks[block][series % BLOCK] = index
    yield from blocks.items()


def _place(
    target: npt.NDArray[Any], rows: list[int], goals: Integers, numbers: npt.NDArray[Any]
) -> None:
    """Put the numbers (rows, series, …) of the series that were asked for where they belong."""
    wanted = goals >= 0
    target[np.ix_(np.array(rows), goals[wanted])] = numbers[:, wanted]


def _batches(records: Iterable[tuple[int, object]]) -> Iterator[tuple[list[int], list[object]]]:
    """Numbers and data, some hundred at a time: unpacked, all of them would take much room."""
    rest = list(records)
    for first in range(0, len(rest), 256):
        numbers, data = zip(*rest[first : first + 256], strict=True)
        yield list(numbers), list(data)


def _table(rows: list[tuple[Any, ...]], columns: int) -> Integers:
    if not set(map(type, chain.from_iterable(rows))) <= {int}:
        raise NotARunError("a table of the file has something else where a whole number belongs")
    table = np.array(rows, dtype=np.int64).reshape(-1, columns)
    if (np.abs(table[:, 1:]) > _LARGEST).any():  # all but the key
        raise NotARunError("a table of the file has numbers beyond what can be counted")
    return table


def _whole(value: object) -> int:
    if not isinstance(value, int) or abs(value) > _LARGEST:
        raise NotARunError(f"the file has {value!r:.60} where a whole number belongs")
    return value


def _small(value: object) -> int:
    if not 0 <= _whole(value) < 1 << 30:
        raise NotARunError(f"the file has {value!r:.60} where a small whole number belongs")
    return _whole(value)


def _real(value: object) -> float:
    if not isinstance(value, int | float):
        raise NotARunError(f"the file has {type(value).__name__} where a number belongs")
    return float(value)


def _mapping(text: object) -> dict[str, Any]:
    value = from_json(text)
    if not isinstance(value, dict):
        raise NotARunError("the file has another JSON value where an object belongs")
    return value
