"""What the writer thread does with what it is given: statements one transaction per flush."""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from nethook.errors import RunInUseError
from nethook.runs import names
from nethook.runs.format.levels import SHOWN, Course, Group, single, tail, unpack_courses
from nethook.runs.format.owner import is_alive
from nethook.runs.format.points import Points, ScalarTrack
from nethook.runs.format.records import COLUMNS, Basis, pack_rows, unpack_rows
from nethook.runs.format.schema import BLOCK, LEVELS, PHASES, key, number_of
from nethook.runs.format.spans import SpanTrack
from nethook.runs.format.texts import for_file, from_json, to_json
from nethook.runs.secrets.masking import masked_text, masked_texts
from nethook.runs.stubs import is_blank
from nethook.runs.writing.truncate import cut_events, cut_notes, cut_windows, leave_out
from nethook.stats.fields import WIDTH, Matrix, empty_rows
from nethook.stats.sheet import Sheet

MAX_EVENTS: Final = 2000
"""Events of one kind that are kept; those that follow are counted at the last one."""

MAX_LOSSES: Final = 512
"""Records of one loss that are kept; when there are more, every second one goes."""


class NewSite(NamedTuple):
    """A site of the model."""

    address: str
    kind: str
    info: Mapping[str, object]


class NewSeries(NamedTuple):
    """A series: a quantity of a site. Its place among all series is its row in a window."""

    id: int
    address: str
    quantity: str
    units: int
    info: Mapping[str, object]


class Event(NamedTuple):
    """Something that happened."""

    step: int
    time: float
    kind: str
    address: str
    message: str
    data: Mapping[str, object]


class LossRecord(NamedTuple):
    """How a loss was made."""

    name: str
    step: int
    phase: str
    data: Mapping[str, object]


class NewSnapshot(NamedTuple):
    """Outputs of a site for a few samples: float32."""

    address: str
    step: int
    shape: Sequence[int]
    data: bytes


@dataclass(eq=False)
class _Track:
    """What is known of one phase: its next window, its spans, its groups of each level."""

    spans: SpanTrack
    number: int = 0
    groups: list[Group] = field(default_factory=lambda: [Group() for _ in LEVELS])


class Store:
    """The tables of a run, behind the verbs that a writer needs.

    Everything happens in a transaction that begins with the first change and ends with `commit`. If
    anything fails, `rollback` takes the file and this object back to the last commit.
    """

    def __init__(self, connection: sqlite3.Connection, mark: Mapping[str, object]) -> None:
        self._connection = connection
        self._mark = mark
        self._again: set[str] = set()  # scalars whose last point gives way to a new one
        self.load()

    # The state in memory is a copy of what the file says, so it can be read back at any time.

    def load(self) -> None:
        """Read from the file how far the run has come."""
        run = self._connection.execute
        self.basis = Basis()
        self.series: dict[tuple[str, str], int] = {}
        rows = run("SELECT id, address, quantity, units, elements, binned FROM series ORDER BY id")
        for series_id, address, quantity, *basis in rows.fetchall():
            self.series[address, quantity] = series_id
            self.basis.add(*basis)
        self._scalars = ScalarTrack(self._connection, names.older_name)
        self._losses: dict[str, tuple[int, int]] = {}  # name -> records so far, stride
        for name, last in run("SELECT name, max(number) FROM losses GROUP BY name").fetchall():
            stride = 1
            while last // stride >= MAX_LOSSES:
                stride *= 2
            self._losses[name] = (last + 1, stride)
        self._events = dict(run("SELECT kind, count(*) FROM events GROUP BY kind").fetchall())
        self._tracks = {phase: self._load_track(phase) for phase in PHASES}
        ends = run("SELECT max(last_step) FROM windows WHERE key < ?", (key("eval"),)).fetchone()
        self.last_step = -1 if ends[0] is None else int(ends[0])

    def _load_track(self, phase: str) -> _Track:
        last = self._connection.execute(
            "SELECT max(key) FROM windows WHERE key >= ? AND key < ? AND closed",
            (key(phase), key(phase, block=1)),
        ).fetchone()[0]
        track = _Track(SpanTrack(phase, self._connection))
        track.number = 0 if last is None else number_of(last) + 1
        # Groups that are not whole yet: what is finer than the last whole record of each level.
        for level, first, end in tail(track.number, len(LEVELS))[1:]:
            for number in range(first, end):
                track.groups[level].add(self._course(phase, level, number))
        return track

    def _course(self, phase: str, level: int, number: int) -> Course:
        """The course of all series in one record of a level (0: in one window)."""
        table = "overviews" if level else "records"
        course = single(empty_rows(len(self.basis)))
        for block in range((len(self.basis) + BLOCK - 1) // BLOCK):
            where = (key(phase, number, block=block, level=level),)
            stored = self._connection.execute(f"SELECT data FROM {table} WHERE key = ?", where)
            data = [row[0] for row in stored.fetchall()]
            if level:
                for _, series, members in unpack_courses(data, block, len(self.basis)):
                    course[series] = members[0]
            else:
                for _, series, numbers in unpack_rows(data, block, self.basis):
                    course[series] = single(numbers[0, :, :WIDTH])
        return course

    # Transactions

    def begin(self) -> None:
        """Begin a transaction, if none is open; refuse if another process took the run over."""
        if self._connection.in_transaction:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        mark = self._info("writer")
        if mark is not None and mark.get("token") != self._mark["token"]:
            raise RunInUseError(f"process {mark.get('pid')} took the run over")

    def claim(self) -> dict[str, Any]:
        """Make this process the writer of the run, unless another one is; nothing is committed yet.

        Returns:
            The facts about the run as the last writer left them; none where nothing was recorded.
        """
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        mark = self._info("writer")
        if is_alive(mark, self._info("beat")) and not self._info("finished"):
            run("ROLLBACK")
            raise RunInUseError(f"process {mark['pid']} is writing it; it can be continued later")
        if is_blank(self._connection):
            for table in ("info", "sites", "series"):
                run(f"DELETE FROM {table}")
        # A window that was open when a writer was killed is all there is of these steps.
        run("UPDATE windows SET closed = 1, why = 'interrupted' WHERE NOT closed")
        earlier = {name: from_json(value) for name, value in run("SELECT key, value FROM info")}
        self.put_info({"writer": self._mark, "finished": None})
        self.load()
        return earlier

    def go_on_at(self, step: int, *, finished: int) -> dict[str, int]:
        """Drop what the run has of this step and later ones; events that went with them, by kind.

        Where the step is the next one after the last that was finished, there is at most a step
        that was cut off; events say what happened in it, and stay.
        """
        self._again = cut_notes(self._connection, step)
        events = {}
        if step > finished:
            leave_out(self._connection, finished + 1)
        cut = min(step, finished + 1)
        if cut <= self.last_step:
            cut_windows(self._connection, cut, len(self.basis))
        if step <= finished:
            events = cut_events(self._connection, step)
            self.put_info({"diagnosis": None})
        self.load()
        return events

    def steps(self) -> int:
        """How many steps of training are kept."""
        total = self._connection.execute(
            "SELECT sum(steps) FROM windows WHERE key < ?", (key("eval"),)
        ).fetchone()
        return int(total[0] or 0)

    def sites(self) -> dict[str, tuple[str, Any]]:
        """Address of each site that is kept -> its kind, and what is known of it."""
        stored = self._connection.execute("SELECT address, kind, info FROM sites").fetchall()
        return {address: (kind, from_json(info)) for address, kind, info in stored}

    def commit(self) -> None:
        """Write what is still open, and make everything since the last commit visible at once."""
        if not self._connection.in_transaction:
            return
        for track in self._tracks.values():
            track.spans.write()
        self._scalars.write()
        self.put_info({"beat": time.time()})
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        """Forget everything since the last commit."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self.load()

    # What is written

    def put_info(self, info: Mapping[str, object]) -> None:
        """Keep facts about the run."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO info VALUES (?, ?)",
            [(for_file(name), to_json(value)) for name, value in info.items()],
        )

    def add_site(self, site: NewSite) -> None:
        """Keep a site; one that is known is kept as it is now."""
        self._connection.execute(
            "INSERT INTO sites (address, kind, info) VALUES (?, ?, ?) "
            "ON CONFLICT (address) DO UPDATE SET kind = excluded.kind, info = excluded.info",
            (for_file(site.address), for_file(site.kind), to_json(site.info)),
        )

    def add_series(self, new: NewSeries) -> None:
        """Keep a series that the file does not have yet."""
        if new.id < len(self.basis):
            return
        self.basis.add(new.units)
        self.series[new.address, new.quantity] = new.id
        self._connection.execute(
            "INSERT INTO series VALUES (?, ?, ?, ?, 0, 0, ?)",
            (new.id, for_file(new.address), for_file(new.quantity), new.units, to_json(new.info)),
        )

    def add_window(self, window: Sheet, *, closed: bool = True) -> None:
        """Keep a window; with closed=False it will come again, with more steps."""
        track = self._tracks[window.phase]
        if window.steps == 0:  # the run has ended, and these are the histograms of the last ones
            track.spans.add_rest(window)
            return
        rows, seen = window.in_order()
        for series_id in self.basis.learn(rows):
            self._connection.execute(
                "UPDATE series SET elements = ?, binned = ? WHERE id = ?",
                (self.basis.elements[series_id], self.basis.binned[series_id], series_id),
            )
        self._connection.execute(
            "INSERT OR REPLACE INTO windows VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                key(window.phase, track.number),
                window.first_step,
                window.last_step,
                window.steps,
                int(closed),
                for_file(window.why),
                time.time(),
            ),
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO records VALUES (?, ?)",
            [
                (key(window.phase, track.number, block=block), data)
                for block, data in pack_rows(rows, seen, self.basis)
            ],
        )
        if not closed:
            track.spans.show(track.number, window)
            return
        track.spans.add(track.number, window)
        track.number += 1
        self._add_course(window.phase, rows, track)
        if window.phase == "train":
            self.last_step = window.last_step

    def _add_course(self, phase: str, rows: Matrix, track: _Track) -> None:
        course: Course | None = None
        for level, group in enumerate(track.groups, start=1):
            if course is None:
                group.add_rows(rows)
            else:
                group.add(course)
            if not group.full:
                return
            number = track.number // LEVELS[level - 1] - 1
            self._connection.executemany(
                "INSERT OR REPLACE INTO overviews VALUES (?, ?)",
                [
                    (key(phase, number, block=block, level=level), data)
                    for block, data in group.pack()
                ],
            )
            course = group.course
            track.groups[level - 1] = Group()

    def add_scalar(self, name: str, points: Points, keep: int) -> None:
        """Keep points of a scalar."""
        if name in self._again and points:
            self._again.discard(name)
            self._scalars.cut(name, int(points[0][0]))
        self._scalars.add(name, points, keep)

    def add_loss(self, loss: LossRecord) -> None:
        """Keep how a loss was made; of many records every second, fourth, … stays."""
        name = for_file(loss.name)
        number, stride = self._losses.get(name, (0, 1))
        if number // stride >= MAX_LOSSES:
            stride *= 2
            self._connection.execute(
                "DELETE FROM losses WHERE name = ? AND number % ? != 0", (name, stride)
            )
        if number % stride == 0:
            self._connection.execute(
                "INSERT INTO losses (name, number, step, phase, data) VALUES (?, ?, ?, ?, ?)",
                (name, number, loss.step, for_file(loss.phase), to_json(loss.data)),
            )
        self._losses[name] = (number + 1, stride)

    def add_event(self, event: Event) -> None:
        """Keep an event; one of a kind of which there are very many is only counted."""
        kind = for_file(event.kind)
        self._events[kind] = self._events.get(kind, 0) + 1
        if self._events[kind] > MAX_EVENTS:
            self._connection.execute(
                "UPDATE events SET repeats = repeats + 1 "
                "WHERE id = (SELECT max(id) FROM events WHERE kind = ?)",
                (kind,),
            )
            return
        self._connection.execute(
            "INSERT INTO events (step, time, kind, address, message, data, repeats) "
            "VALUES (?, ?, ?, ?, ?, ?, 0)",
            (
                event.step,
                event.time,
                kind,
                for_file(event.address),
                for_file(masked_text(event.message)),
                to_json(masked_texts(event.data)),
            ),
        )

    def add_snapshot(self, snapshot: NewSnapshot) -> None:
        """Keep outputs of a site."""
        self._connection.execute(
            "INSERT INTO snapshots (address, step, shape, data) VALUES (?, ?, ?, ?)",
            (
                for_file(snapshot.address),
                snapshot.step,
                to_json(list(snapshot.shape)),
                zlib.compress(snapshot.data, 1),
            ),
        )

    def put_findings(self, findings: Sequence[Mapping[str, object]]) -> None:
        """Keep these findings in the place of those that were there."""
        self._connection.execute("DELETE FROM findings")
        self._connection.executemany(
            "INSERT INTO findings (code, severity, data) VALUES (?, ?, ?)",
            [
                (
                    for_file(finding.get("code", "")),
                    for_file(finding.get("severity", "")),
                    to_json(finding),
                )
                for finding in findings
            ],
        )

    def _info(self, name: str) -> Any:
        stored = self._connection.execute(
            "SELECT value FROM info WHERE key = ?", (name,)
        ).fetchone()
        return None if stored is None else from_json(stored[0])


def layout_info() -> dict[str, object]:
    """How the packed records of this file are laid out: for readers of another version."""
    return {"columns": list(COLUMNS), "shown": list(SHOWN), "block": BLOCK, "levels": list(LEVELS)}
