"""The shards of one process: filled batch by batch, written when full, found again later."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import torch

from nethook.errors import FeaturesError, FeatureShapeError, ResumeError
from nethook.extracting.batches import Batch, Column
from nethook.extracting.columns import (
    NUMBERS,
    PREFIX,
    Kind,
    check_stored,
    kind_of,
    storable,
    to_tensors,
)
from nethook.extracting.fingerprint import differences
from nethook.extracting.index import VERSION, Entry, own_shards, shard_name
from nethook.extracting.loader import Delivery
from nethook.extracting.shard import Shard, publish, stage_shard

LONGEST: Final = 600.0
"""Seconds after which a shard is written although it is not full: what a kill can cost.

Ten minutes of work are cheap to repeat, and files of ten minutes are not too many: a week makes a
thousand.
"""


class Writer:
    """Writes the shards of one process, after those that it finds."""

    def __init__(self, folder: Path, rank: int, setup: dict[str, Any], shard_bytes: float) -> None:
        self._folder = folder
        self._rank = rank
        self._setup = setup
        self._most = shard_bytes
        self.kinds: dict[str, Kind] = {}
        self.entries: list[Entry] = []
        self.rows = 0  # in whole shards and in the one that is filled
        self.batches = 0
        self.order = ""
        for shard in own_shards(folder, rank):
            self._take_over(shard)
        self._parts: list[dict[str, Column]] = []  # of the shard that is filled, a batch each
        self._bytes = 0
        self._rows_before = self.rows
        self._since = time.monotonic()
        self._thread = ThreadPoolExecutor(1, "nethook.extract")
        self._pending: Future[None] | None = None

    def _take_over(self, shard: Shard) -> None:
        """Counts a shard that an earlier run wrote, if it is of the same extraction."""
        name = shard.path.name
        try:
            about = json.loads(shard.about["nethook_features"])
            then, version = about["setup"], about["version"]
            rows, batches, order = about["rows"], about["batches"], about["order"]
            kinds = {column: Kind.from_dict(data) for column, data in about["columns"].items()}
            sound = type(rows) is int and type(batches) is int and isinstance(order, str)
            if not isinstance(then, dict) or version != VERSION or not sound:
                raise ValueError("another form")
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ResumeError(f"{name} is not from an extraction that can be continued.") from None
        changed = differences(then, self._setup)
        if changed:
            raise ResumeError(changed_since(changed))
        wrong = check_stored(kinds, rows, shard.tensors)
        if wrong is not None:
            raise ResumeError(f"{name} cannot be continued: {wrong}.")
        self.kinds = kinds
        self.entries.append(Entry(name, rows, shard.size))
        self.rows += rows
        self.batches, self.order = batches, order

    def add(self, features: Mapping[str, torch.Tensor], batch: Batch, delivery: Delivery) -> int:
        """Takes in one batch; the number of its rows."""
        rows = None if delivery.numbers is None else len(delivery.numbers)
        columns: dict[str, Column] = {}
        for site, tensor in features.items():
            columns[PREFIX + site] = storable(tensor, f"the features of {site!r}", rows)
            rows = len(columns[PREFIX + site])
        for name, given in (("labels", batch.labels), ("ids", batch.ids)):
            if given is not None:
                columns[name] = storable(given, f"the {name}", rows)
        assert rows is not None  # there is at least one site
        columns[NUMBERS] = (
            torch.arange(self.rows, self.rows + rows)
            if delivery.numbers is None
            else torch.tensor(delivery.numbers, dtype=torch.int64)
        )
        self._check_same(columns)
        size = sum(_bytes(column) for column in columns.values())
        late = time.monotonic() - self._since > LONGEST
        if self._parts and (self._bytes + size > self._most or late):
            self.flush()
        self._parts.append(columns)
        self._bytes += size
        self.rows += rows
        self.batches += 1
        self.order = delivery.order
        return rows

    def _check_same(self, columns: Mapping[str, Column]) -> None:
        kinds = {name: kind_of(column) for name, column in columns.items()}
        if not self.kinds:
            self.kinds = kinds
        for name in dict.fromkeys([*self.kinds, *kinds]):
            was, now = self.kinds.get(name), kinds.get(name)
            if was == now:
                continue
            shown = name.removeprefix(PREFIX)
            if was is None or now is None:
                there = "lacks" if now is None else "has"
                raise FeatureShapeError(
                    f"batch {self.batches} {there} {shown!r}, unlike those before it."
                )
            raise FeatureShapeError(
                f"{shown!r} is {was} for the samples so far, and {now} in batch {self.batches}; "
                "all rows must be alike. Pool what differs in length (pool='mean'), or pad every "
                "batch to one length."
            )

    def flush(self) -> None:
        """Writes what there is as a shard."""
        if not self._parts:
            return
        rows = self.rows - self._rows_before
        tensors: dict[str, list[torch.Tensor]] = {}
        for name in self.kinds:
            tensors |= to_tensors(name, [columns[name] for columns in self._parts])
        about = {
            "version": VERSION,
            "setup": self._setup,
            "columns": {name: kind.to_dict() for name, kind in self.kinds.items()},
            "rows": rows,
            "batches": self.batches,  # done when this shard is: those of earlier ones included
            "order": self.order,
        }
        file = shard_name(self._rank, len(self.entries))
        path = self._folder / file
        self.settle()
        temporary, size = stage_shard(path, tensors, {"nethook_features": json.dumps(about)})
        # The system has the bytes, so the memory is free. That they reach the disk is waited for
        # in a thread, while the next shard is filled.
        self._pending = self._thread.submit(publish, temporary, path)
        self.entries.append(Entry(file, rows, size))
        self._parts, self._bytes, self._rows_before = [], 0, self.rows
        self._since = time.monotonic()

    def settle(self) -> None:
        """Waits until what was written is on the disk."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def close(self) -> None:
        """Waits for the disk, and ends the thread; what went wrong is raised by `settle`."""
        self._thread.shutdown()


def changed_since(changed: list[str]) -> str:
    """What to say where the folder holds another extraction."""
    return (
        f"the folder holds an extraction that was begun with something else: {'; '.join(changed)}. "
        "Extract into another folder, or remove this one."
    )


def _bytes(column: Column) -> int:
    if isinstance(column, list):
        return sum(len(text) for text in column)
    return column.nbytes


@contextmanager
def alone(folder: Path, rank: int, world: int) -> Iterator[None]:
    """A block in which no other process writes the shards of this rank; a killed one holds none."""
    try:
        import fcntl
    except ImportError:  # Windows: two at once would write the same files with the same bytes
        yield
        return
    path = folder / f"rank-{rank:05}.lock"
    ours = [f"rank-{rank:05}*.tmp"] + (["index.json.*.tmp"] if world == 1 else [])
    try:
        # A link there would have a file made, or locked, that is somewhere else.
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise FeaturesError(f"nothing can be written into {str(folder)!r}: {error}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FeaturesError(
                f"another process is extracting into {str(folder)!r} (rank {rank})."
            ) from error
        try:
            for left in (path for pattern in ours for path in folder.glob(pattern)):
                with suppress(OSError):  # what is not ours to remove stays
                    left.unlink()  # of a run that was killed
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(lock)
