"""The tables of a run file. `docs/run-file.md` tells what they mean."""

from __future__ import annotations

from typing import Final

APPLICATION_ID: Final = 0x6E_68_6F_6B
"""'nhok', in the header of every run file: what SQLite calls the application_id."""

VERSION: Final = 3
"""The version of the schema (user_version). A reader refuses a file that has a higher one."""

PAGE_SIZE: Final = 16384
"""A record of 64 series has 1 to 2 KB: smaller pages would be left a fifth empty."""

# `INTEGER PRIMARY KEY` columns named `key` are packed by the functions below: what belongs together
# lies together, so the history of one layer is one stretch of the file.
TABLES: Final = {
    # What ran: one JSON value per key.
    "info": "CREATE TABLE info (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "sites": (
        "CREATE TABLE sites (id INTEGER PRIMARY KEY, address TEXT NOT NULL UNIQUE, "
        "kind TEXT NOT NULL, info TEXT NOT NULL)"
    ),
    "series": (
        "CREATE TABLE series (id INTEGER PRIMARY KEY, address TEXT NOT NULL, "
        "quantity TEXT NOT NULL, units INTEGER NOT NULL, elements INTEGER NOT NULL, "
        "binned INTEGER NOT NULL, info TEXT NOT NULL, UNIQUE (address, quantity))"
    ),
    # The key is packed from phase and number.
    "windows": (
        "CREATE TABLE windows (key INTEGER PRIMARY KEY, first_step INTEGER NOT NULL, "
        "last_step INTEGER NOT NULL, steps INTEGER NOT NULL, closed INTEGER NOT NULL, "
        "why TEXT NOT NULL, time REAL NOT NULL)"
    ),
    # The key: phase, block, number of the window.
    "records": "CREATE TABLE records (key INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    # The key: phase, level, block, number of the group.
    "overviews": "CREATE TABLE overviews (key INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    # The key: phase, number of the first window.
    "spans": (
        "CREATE TABLE spans (key INTEGER PRIMARY KEY, first_step INTEGER NOT NULL, "
        "last_step INTEGER NOT NULL, windows INTEGER NOT NULL)"
    ),
    # The key: phase, block, number of the first window of the span.
    "histograms": "CREATE TABLE histograms (key INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    "unit_bits": "CREATE TABLE unit_bits (key INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    # The key: id of the name, number of the chunk.
    "scalar_names": (
        "CREATE TABLE scalar_names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
        "keep INTEGER NOT NULL)"
    ),
    "scalars": (
        "CREATE TABLE scalars (key INTEGER PRIMARY KEY, first_step INTEGER NOT NULL, "
        "first_time REAL NOT NULL, data BLOB NOT NULL)"
    ),
    "losses": (
        "CREATE TABLE losses (id INTEGER PRIMARY KEY, name TEXT NOT NULL, number INTEGER NOT NULL, "
        "step INTEGER NOT NULL, phase TEXT NOT NULL, data TEXT NOT NULL)"
    ),
    "events": (
        "CREATE TABLE events (id INTEGER PRIMARY KEY, step INTEGER NOT NULL, time REAL NOT NULL, "
        "kind TEXT NOT NULL, address TEXT NOT NULL, message TEXT NOT NULL, data TEXT NOT NULL, "
        "repeats INTEGER NOT NULL)"
    ),
    "findings": (
        "CREATE TABLE findings (id INTEGER PRIMARY KEY, code TEXT NOT NULL, "
        "severity TEXT NOT NULL, data TEXT NOT NULL)"
    ),
    # `shape` is a JSON list, `data` float32 by zlib.
    "snapshots": (
        "CREATE TABLE snapshots (id INTEGER PRIMARY KEY, address TEXT NOT NULL, "
        "step INTEGER NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL)"
    ),
}
"""Name of a table -> the statement that makes it; a reader takes a file with exactly these."""

SINCE: Final = {"snapshots": 2}
"""Tables that older files do not have, and the version that brought them."""

PHASES: Final = ("train", "eval", "aux")
"""What a pass was for. Each phase has windows, overviews and spans of its own."""

BLOCK: Final = 64
"""Series that share one packed record: series `id` is row `id % BLOCK` of block `id // BLOCK`."""

HISTOGRAM_BLOCK: Final = 16
"""Series that share one packed record of histograms, which are larger: see BLOCK."""

LEVELS: Final = (8, 64, 512)
"""Windows that one record of the overview levels 1, 2 and 3 stands for."""

SPANS: Final = 256
"""Spans of steps for which the histograms of a series are kept."""

CHUNK: Final = 512
"""Points in one chunk of a scalar."""

# Limits that a reader holds a file against before it gives memory to it.
MAX_SERIES: Final = 1 << 20
MAX_UNITS: Final = 1 << 16
MAX_WINDOWS: Final = 1 << 20
MAX_ROWS: Final = 1 << 18
MAX_BLOB: Final = 1 << 23
MAX_TEXT: Final = 1 << 20
MAX_SNAPSHOT: Final = 1 << 19  # elements of one snapshot

_PHASE_BITS = 56
_LEVEL_BITS = 52
_BLOCK_BITS = 32
NUMBERS: Final = 1 << _BLOCK_BITS
"""Numbers of windows (and groups, spans, chunks) are below this."""


def key(phase: str, number: int = 0, *, block: int = 0, level: int = 0) -> int:
    """The packed key: phase << 56 | level << 52 | block << 32 | number."""
    packed = PHASES.index(phase) << _PHASE_BITS | level << _LEVEL_BITS
    return packed | block << _BLOCK_BITS | number


def number_of(packed: int) -> int:
    """The number in a packed key."""
    return packed & (NUMBERS - 1)


def scalar_key(name: int, chunk: int) -> int:
    """The packed key of a chunk of points: name's id << 32 | chunk."""
    return name << _BLOCK_BITS | chunk
