"""Run files that were damaged, or made to do harm: read, or refused in nethook's own words."""

from __future__ import annotations

import functools
import json
import random
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

import nethook
from nethook.errors import NethookError
from nethook.page.folder import Folder
from nethook.page.summaries import summary_of
from nethook.running.verdict import verdict_lines
from nethook.runs.format.schema import TABLES
from nethook.text.paragraphs import Style
from tests.limited import run_limited
from tests.runs.made import write_run

TITLE = "mutated run files"
TRIES = 300
SHORT = 12

BLOBS = ("records", "overviews", "histograms", "unit_bits", "scalars", "snapshots")
TEXTS = [("info", "value"), ("sites", "info"), ("series", "info"), ("losses", "data")]
TEXTS += [("events", "data"), ("findings", "data"), ("snapshots", "shape")]


@functools.cache
def originals() -> tuple[Path, Path]:
    """Two whole runs, with something in every table."""
    folder = Path(tempfile.mkdtemp(prefix="nethook-faults-"))
    for name, steps in (("one", 80), ("two", 40)):
        writer = write_run(folder / f"{name}.db", steps, close=False)
        writer.event("hello", 3, "a message", "layer0", {"a": 1})
        writer.loss("loss", 3, {"kind": "NllLoss", "chain": ["log_softmax", "nll_loss"]})
        for step in range(steps):
            writer.log("loss", 1 / (1 + step), step)
        writer.snapshot("layer0", 2, np.ones((2, 3), dtype=np.float32))
        writer.findings([{"code": "dead-units", "severity": "warning", "sites": ["layer0"]}])
        writer.close()
    return folder / "one.db", folder / "two.db"


def attempt(seed: int, folder: Path) -> None:
    """Damages a run in a way that the seed decides, and reads all of it."""
    chance = random.Random(seed)
    path = folder / "run.db"
    shutil.copy(originals()[0], path)
    DAMAGES[seed % len(DAMAGES)](path, chance)
    run_limited(lambda: read_or_refuse(path))


def read_or_refuse(path: Path) -> None:
    """Reads a file as every reader does; each of nethook's errors is an answer."""
    for reader in (read_run, judge, show):
        said = ""
        try:
            reader(path)
        except NethookError as error:
            said = str(error)
        assert len(said) < 2000  # in words, and not the damage itself
        assert "\x1b" not in said


def read_run(path: Path) -> None:
    with nethook.open_run(path) as run:
        failures = []
        for read in (
            lambda: repr(run), lambda: run.info, lambda: run.ranks, lambda: run.sites,
            lambda: run.catalogue, lambda: run.events, lambda: run.losses, lambda: run.findings,
            lambda: run.snapshots, lambda: dict(run.scalars), lambda: run.overview(),
            lambda: run.overview(points=1),
        ):  # fmt: skip
            try:
                repr(read())
            except NethookError as error:
                failures.append(error)
        for info in run.catalogue[:4]:
            for read in (run.series, run.histograms, run.units, run.quantiles):
                repr(read(info.address, info.quantity))
        if failures:
            raise failures[0]


def judge(path: Path) -> None:
    with nethook.open_run(path) as run:
        for finding in nethook.diagnose(run):
            str(finding)
        list(verdict_lines(run, Style(False)))


def show(path: Path) -> None:
    folder = Folder(path.parent)
    for entry in folder.entries():
        folder.open(entry)
        summary_of(entry)


# How a file is damaged


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 3, 30, 300])):
        data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
    path.write_bytes(data)


def flip_in_front(path: Path, chance: random.Random) -> None:
    """The header and the schema: what everything else depends on."""
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 3, 10])):
        data[chance.randrange(16, 400)] ^= chance.randrange(1, 256)
    path.write_bytes(data)


def cut(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data))])


def swap_pages(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    pages = len(data) // size
    for _ in range(chance.choice([1, 4])):
        one, two = (chance.randrange(1, pages) * size for _ in range(2))
        data[one : one + size], data[two : two + size] = (
            data[two : two + size],
            data[one : one + size],
        )
    path.write_bytes(data)


def blank(path: Path, chance: random.Random) -> None:
    """A stretch of zeros or of ones, as a disk leaves it."""
    data = bytearray(path.read_bytes())
    start = chance.randrange(len(data))
    end = min(len(data), start + chance.choice([100, 5000, 50_000]))
    data[start:end] = bytes([chance.choice([0, 255])]) * (end - start)
    path.write_bytes(data)


def splice(path: Path, chance: random.Random) -> None:
    """Pages of another run in the place of its own."""
    data, other = bytearray(path.read_bytes()), originals()[1].read_bytes()
    size = int.from_bytes(data[16:18], "big")
    for _ in range(chance.choice([1, 5])):
        at = chance.randrange(1, min(len(data), len(other)) // size) * size
        data[at : at + size] = other[at : at + size]
    path.write_bytes(data)


VALUES = (
    None, -1, 0, 1 << 40, (1 << 63) - 1, -(1 << 63), 1e308, float("inf"), float("-inf"), "text", "",
    "\x1b[2J\nlayer", b"", b"\xff" * 9, b"x" * 100_000, "9" * 5000, "[" * 5000,
)  # fmt: skip


def change_cells(path: Path, chance: random.Random) -> None:
    """Values of other types and sizes than the tables are made for."""
    with _open(path) as connection:
        for _ in range(chance.choice([1, 3])):
            table = chance.choice(sorted(TABLES))
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            place = chance.choice(
                ["1", f"rowid = (SELECT {chance.choice(['max', 'min'])}(rowid) FROM {table})"]
            )
            try:
                connection.execute(
                    f"UPDATE OR IGNORE {table} SET {chance.choice(columns)} = ? WHERE {place}",
                    (chance.choice(VALUES),),
                )
            except sqlite3.Error:
                continue  # SQLite itself does not take it, so no file can hold it


def change_blobs(path: Path, chance: random.Random) -> None:
    """Packed records that are bombs, cut off, or another's."""
    with _open(path) as connection:
        table = chance.choice(BLOBS)
        found = connection.execute(f"SELECT data FROM {table} LIMIT 1").fetchone()
        good = found[0] if found else b""
        bad = bytearray(good or b"\0")
        for _ in range(3):
            bad[chance.randrange(len(bad))] ^= chance.randrange(1, 256)
        chosen = chance.choice(
            [
                zlib.compress(bytes(300 << 20), 9),
                zlib.compress(chance.randbytes(5000)),
                good[: chance.randrange(len(good) + 1)],
                good + good,
                bytes(bad),
                chance.randbytes(chance.choice([1, 8, 64, 4000])),
                (0xFFFFFFFF).to_bytes(4, "little") * 50,
                json.dumps({"a": 1}).encode(),
            ]
        )
        connection.execute(f"UPDATE {table} SET data = ?", (chosen,))


def change_texts(path: Path, chance: random.Random) -> None:
    """JSON of any form where nethook writes one."""
    with _open(path) as connection:
        table, column = chance.choice(TEXTS)
        values = [
            "", "{", "null", "[]", "7", '"text"', "[" * 3000 + "]" * 3000, "NaN", "1e999",
            '{"a":' * 3000 + "1" + "}" * 3000, "9" * 4000, '{"columns": ["mean", 7, null]}',
            '{"columns": []}', "[1, 2, 3]", "[1000000, 1000000]", "[-1]", '{"training": 7}',
            '{"time": "x", "seconds": [], "failed": 7}', '{"\\u001b": "\\ud800"}', "-1",
            "1" + "0" * 300,
        ]  # fmt: skip
        where = ""
        if table == "info":
            keys = [row[0] for row in connection.execute("SELECT key FROM info")]
            where = f" WHERE key = '{chance.choice([*keys, 'world_size', 'layout'])}'"
        connection.execute(f"UPDATE {table} SET {column} = ?{where}", (chance.choice(values),))


def change_rows(path: Path, chance: random.Random) -> None:
    """Rows that are missing, doubled or out of order."""
    with _open(path) as connection:
        table = chance.choice(sorted(TABLES))
        change = chance.choice(
            [
                f"DELETE FROM {table}",
                f"DELETE FROM {table} WHERE rowid % 3 = 1",
                f"UPDATE OR IGNORE {table} SET rowid = rowid + {chance.choice([1, 7, 1 << 40])}",
                f"UPDATE OR IGNORE {table} SET rowid = -rowid",
            ]
        )
        try:
            connection.execute(change)
        except sqlite3.Error:
            connection.execute(f"DELETE FROM {table}")


def add_beside(path: Path, chance: random.Random) -> None:
    """Files beside it that SQLite would read."""
    other = originals()[1].read_bytes()
    for end in chance.sample(["-wal", "-shm", "-journal"], chance.randint(1, 3)):
        data = chance.choice([b"", chance.randbytes(5000), other, other[:1000], bytes(40_000)])
        Path(f"{path}{end}").write_bytes(data)


DAMAGES: list[Callable[[Path, random.Random], None]] = [
    flip, flip_in_front, cut, swap_pages, blank, splice, change_cells, change_blobs, change_texts,
    change_rows, add_beside, change_cells,
]  # fmt: skip


class _open:
    """A file that is open for changes, as one transaction."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)

    def __enter__(self) -> sqlite3.Connection:
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.commit()
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
