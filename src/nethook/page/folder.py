"""The runs that are served: found in one folder, known by ids, read again when they change.

A run is asked for by its id alone, which is made from its place in the folder; what a browser sends
is looked up among the ids, and never becomes part of a path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from nethook.errors import RunFileError
from nethook.figures.reading import Reading
from nethook.files import exists, is_file
from nethook.runs.paths import is_rank_file, rank_files
from nethook.text.escape import shorten

MOST_FILES: Final = 5000
"""Runs of a folder that are listed: the newest."""
_SEEN: Final = 50_000  # entries of folders that are looked at
_OPEN: Final = 6  # runs that are kept in memory as they were read
_LOG: Final = "-wal"  # what SQLite writes beside a file first
_PATIENCE: Final = 4.0  # a run that takes t seconds to read is read again after this many t

Stamp = tuple[object, ...]


@dataclass(frozen=True)
class Entry:
    """A run of the folder: its id, its place, and what to call it."""

    id: str
    path: Path
    name: str


@dataclass(eq=False)
class Opened:
    """A run as it was read at one moment. `problem` says why it cannot be read."""

    entry: Entry
    stamp: Stamp
    reading: Reading | None
    state: str  # as `run_state` says; "broken" where it cannot be read
    problem: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    when: float = field(default_factory=time.monotonic)
    seconds: float = 0.0  # that parts of it took to make

    @property
    def tag(self) -> str:
        """Tells this moment of this run from every other."""
        text = repr((self.entry.id, self.stamp, self.state))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class Folder:
    """A folder of runs, or a single run file."""

    def __init__(self, place: Path, *, wait: bool = False) -> None:
        self.place = place.expanduser().absolute()
        # A file that is still to be written is served as soon as it is there.
        self.single = wait or is_file(self.place) or self.place.suffix == ".db"
        self.left_out = 0
        """Runs that are too many, the oldest, when `entries` was last asked."""
        self._entries: dict[str, Entry] = {}
        self._opened: OrderedDict[str, Opened] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def title(self) -> str:
        """What is served, in short."""
        return shorten(self.place.name or str(self.place), 60)

    def entries(self) -> list[Entry]:
        """The runs that are there now, the newest first."""
        dated = []
        for path in self._files():
            try:
                when = path.stat().st_mtime
            except OSError:
                continue  # gone since
            dated.append((when, self._entry(path)))
        dated.sort(key=lambda pair: (-pair[0], pair[1].name))
        entries = [entry for _, entry in dated[:MOST_FILES]]
        with self._lock:
            self._entries = {entry.id: entry for entry in entries}
            self.left_out = len(dated) - len(entries)
        return entries

    def entry(self, run: str) -> Entry | None:
        """The run with this id, or None."""
        entry = self._entries.get(run)
        if entry is None:
            self.entries()
            entry = self._entries.get(run)
        return entry

    def is_open(self, run: str) -> bool:
        """Whether the run with this id is kept in memory, as it is or was."""
        return run in self._opened

    def id_of(self, path: Path) -> str:
        """The id of a run of this folder."""
        base = self.place.parent if self.single else self.place
        try:
            name = str(path.relative_to(base))
        except ValueError:
            name = str(path)
        return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:10]

    def open(self, entry: Entry) -> Opened:
        """The run as it is now; as it was a moment ago where reading it takes long."""
        stamp = stamp_of(entry.path)
        with self._lock:
            opened = self._opened.get(entry.id)
            if opened is not None:
                self._opened.move_to_end(entry.id)
        if opened is not None and opened.stamp == stamp and not _died(opened):
            return opened
        if (
            opened is not None
            and opened.reading is not None
            and opened.stamp != stamp
            and time.monotonic() - opened.when < _PATIENCE * opened.seconds
        ):
            return opened
        fresh = _open(entry, stamp)
        with self._lock:
            self._opened[entry.id] = fresh
            self._opened.move_to_end(entry.id)
            while len(self._opened) > _OPEN:
                self._opened.popitem(last=False)
        return fresh

    def _entry(self, path: Path) -> Entry:
        base = self.place.parent if self.single else self.place
        name = str(path.relative_to(base).with_suffix(""))
        return Entry(self.id_of(path), path, name)

    def _files(self) -> Iterator[Path]:
        if self.single:
            # Of a run whose first rank is missing, the file of another stands for it.
            ranks = rank_files(self.place)
            if exists(self.place) or ranks:
                yield self.place if exists(self.place) else next(iter(ranks.values()))
            return
        root, seen, given = self.place.resolve(), 0, set()
        for folder, below, names in os.walk(self.place):  # does not follow links to folders
            below[:] = sorted(name for name in below if not name.startswith("."))
            ranked, links = [name for name in names if ".rank" in name], _links(folder, names)
            for name in sorted(names):
                seen += 1
                path = Path(folder, name)
                if path.suffix != ".db" or name.startswith("."):
                    continue
                if is_rank_file(path):
                    ranks = rank_files(path, ranked)
                    if 0 in ranks or next(iter(ranks.values())) != path:
                        continue
                # `realpath` ends also where links lead in a circle.
                if name in links and root not in Path(os.path.realpath(path)).parents:
                    continue  # leads out of the folder
                if path not in given:
                    given.add(path)
                    yield path
            if seen > _SEEN:
                return


def _links(folder: str, names: Collection[str]) -> set[str]:
    """Which of the names are symbolic links; all may be where the folder cannot be read again."""
    try:
        with os.scandir(folder) as each:  # knows it without a question per name
            return {entry.name for entry in each if entry.is_symlink()}
    except OSError:
        return set(names)


def stamps_of(entries: Iterable[Entry]) -> dict[str, Stamp]:
    """The stamps of many runs by their ids: each folder is listed once."""
    listed: dict[Path, _Beside] = {}
    stamps = {}
    for entry in entries:
        place = entry.path.parent
        if place not in listed:
            listed[place] = _beside(place)
        stem = entry.path.stem.partition(".rank")[0]
        ranks, logs = listed[place].ranks.get(stem, ()), listed[place].logs
        files = rank_files(entry.path, ranks) if ranks else {0: entry.path}
        stamps[entry.id] = _stamp(files, logs)
    return stamps


class _Beside(NamedTuple):
    """What lies in a folder: possible files of ranks by what they begin with, and SQLite's logs."""

    ranks: dict[str, list[str]]
    logs: set[str]


def _beside(place: Path) -> _Beside:
    found = _Beside({}, set())
    with contextlib.suppress(OSError, ValueError):
        for name in os.listdir(place):  # noqa: PTH208 - thousands of paths take long
            if name.endswith(_LOG):
                found.logs.add(name)
            begin, ranked, _ = name.partition(".rank")
            if ranked:
                found.ranks.setdefault(begin, []).append(name)
    return found


def stamp_of(path: Path) -> Stamp:
    """What changes when anything is written to a run."""
    return _stamp(rank_files(path) or {0: path})


def _stamp(files: Mapping[int, Path], logs: Collection[str] | None = None) -> Stamp:
    """The stamp of the files of all ranks; `logs` are the names of logs that are there."""
    parts: list[object] = []
    for rank, file in files.items():
        own = (file, file.name), (f"{file}{_LOG}", f"{file.name}{_LOG}")
        for place, name in own:
            if logs is not None and name.endswith(_LOG) and name not in logs:
                continue
            try:
                stat = os.stat(place)  # noqa: PTH116 - thousands of paths take long
            except (OSError, ValueError):
                continue
            parts.append((rank, stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return tuple(parts)


def state_of(reading: Reading) -> str:
    """How the run is: that of the ranks which says most about it, and how its script ended."""
    return run_state({rank.state for rank in reading.run.ranks}, reading.run.info)


def run_state(states: Collection[str], info: Mapping[str, Any]) -> str:
    """`open`, `died`, `crashed`, `interrupted`, `finished` or `missing`."""
    ended = info.get("ended")
    how = next((s for s in ("open", "died", "finished") if s in states), "missing")
    if how == "open" or not isinstance(ended, Mapping):
        return how
    if ended.get("interrupted") is True:
        return "interrupted"
    return "crashed" if ended.get("error") else how


def _died(opened: Opened) -> bool:
    """Whether a run that was being written is no longer: nothing in the file tells."""
    return (
        opened.state == "open"
        and opened.reading is not None
        and _guarded_state(opened.reading) != "open"
    )


def _guarded_state(reading: Reading) -> str:
    try:
        return state_of(reading)
    except RunFileError:
        return "broken"


def _open(entry: Entry, stamp: Stamp) -> Opened:
    try:
        reading = Reading(entry.path)
        return Opened(entry, stamp, reading, state_of(reading))
    except RunFileError as error:
        return Opened(entry, stamp, None, "broken", str(error))
    except Exception as error:  # a file of a stranger may be wrong in ways that nobody thought of
        return Opened(entry, stamp, None, "broken", f"{type(error).__name__}: {error}")
