"""The index of a folder of features: which shards there are, what they hold, in which order.

    index.json                           written last, so a folder that has it is whole
    rank-00000-shard-00000.safetensors   the shards, of each process its own
    rank-00000.json                      with several processes: that one of them is done

Processes that extract together share nothing but the folder. Each that is done looks whether all
others are; the last one sees that, and writes the index. Two that see it at once write the same
bytes. Should none see it (a file system that is slow to tell), whoever loads the folder joins it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from nethook.errors import FeaturesError, NoSuchFeaturesError, NotFeaturesError, ResumeError
from nethook.extracting.columns import NUMBERS, Kind, check_stored
from nethook.extracting.fingerprint import differences
from nethook.extracting.shard import Shard, read_shard, write_whole
from nethook.files import exists, read_file

VERSION = 1
INDEX = "index.json"
_MOST_BYTES = 64_000_000  # of JSON: half a million shards
_MOST_RANKS = 100_000  # more processes than anybody has: a forged number must not make a loop
_SHARD_NAME = re.compile(r"rank-(\d{5})-shard-(\d{5,9})\.safetensors", re.ASCII)

Order = Literal["stored", "index"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One shard, as the index describes it."""

    file: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Index:
    """What a folder holds.

    `order` is "stored" where rows lie in the order in which they are counted, and "index" where
    they are sorted by their number in the data set.
    """

    setup: dict[str, Any]
    kinds: dict[str, Kind]
    shards: tuple[Entry, ...]
    rows: int
    order: Order

    def to_dict(self) -> dict[str, Any]:
        """The index as plain data."""
        return {
            "nethook_features": VERSION,
            "setup": self.setup,
            "columns": {name: kind.to_dict() for name, kind in self.kinds.items()},
            "shards": [{"file": e.file, "rows": e.rows, "bytes": e.bytes} for e in self.shards],
            "rows": self.rows,
            "order": self.order,
        }


def shard_name(rank: int, number: int) -> str:
    """The name of a shard."""
    return f"rank-{rank:05}-shard-{number:05}.safetensors"


def part_name(rank: int) -> str:
    """The name of the file that says that a process is done."""
    return f"rank-{rank:05}.json"


def write_index(path: Path, index: Index) -> None:
    """Writes an index, or the part of one process, whole or not at all."""
    text = json.dumps(index.to_dict(), indent=1).encode()
    write_whole(path, lambda stream: stream.write(text))


def read_index(path: Path) -> Index:
    """Reads an index and checks its form. The shards are checked by `open_shards`."""
    try:
        return _read(json.loads(read_file(path, most=_MOST_BYTES, links=False)), path.name)
    except (NotFeaturesError, FileNotFoundError):
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise NotFeaturesError(f"{path.name} is not an index of features: {error}") from None


def find_index(folder: Path) -> Index:
    """The index of a folder; where only the parts of all processes are there, they are joined."""
    try:
        return _find_index(folder)
    except OSError as error:
        if isinstance(error, FeaturesError):
            raise
        raise FeaturesError(f"the folder {str(folder)!r} cannot be read: {error}") from None


def _find_index(folder: Path) -> Index:
    if not folder.is_dir():
        raise NoSuchFeaturesError(f"there is no folder {str(folder)!r}.")
    if exists(folder / INDEX):
        return read_index(folder / INDEX)
    joined = join_parts(folder)
    if joined is not None:
        return joined
    if any(_SHARD_NAME.fullmatch(path.name) for path in folder.iterdir()):
        raise NoSuchFeaturesError(
            f"the extraction into {str(folder)!r} has not ended. Call nethook.extract again with "
            "the same arguments: it goes on where it stopped."
        )
    raise NoSuchFeaturesError(f"{str(folder)!r} holds no features: it has no {INDEX}.")


def join_parts(folder: Path) -> Index | None:
    """The index of all processes, if all of them are done; None if not."""
    parts: list[Index] = []
    world = 1
    while len(parts) < world:
        try:
            of_rank = read_index(folder / part_name(len(parts)))
        except FileNotFoundError:
            return None
        told = of_rank.setup.get("world")
        if type(told) is not int or not len(parts) < told <= _MOST_RANKS:
            raise NotFeaturesError(f"{part_name(len(parts))} does not know how many there are.")
        world = told
        parts.append(of_rank)
    first = parts[0]
    for rank, of_rank in enumerate(parts):
        other = differences(first.setup, of_rank.setup)
        if not other and of_rank.kinds != first.kinds and of_rank.rows and first.rows:
            other = ["the shapes or types of the features"]
        if other:
            raise ResumeError(
                f"the processes 0 and {rank} did not extract the same: {'; '.join(other)}."
            )
    kinds = next((of_rank.kinds for of_rank in parts if of_rank.rows), first.kinds)
    entries = tuple(entry for of_rank in parts for entry in of_rank.shards)
    return joined(folder, first.setup, kinds, entries)


def joined(
    folder: Path, setup: dict[str, Any], kinds: dict[str, Kind], entries: tuple[Entry, ...]
) -> Index:
    """The index of these shards: rows in the order of the data set, padding left out."""
    rows = sum(entry.rows for entry in entries)
    index = Index(setup, kinds, entries, rows, "stored")
    shards = open_shards(folder, index)
    unique = setup.get("world") != 1  # a sampler pads so that all processes have the same number
    if _in_order(shards, unique=unique):
        return index
    count = len(sorted_rows(stored_numbers(shards), unique=unique))
    return Index(setup, kinds, entries, count, "index")


def _in_order(shards: Sequence[Shard], *, unique: bool) -> bool:
    """Whether rows lie in the order of the data set. One shard at a time is looked at."""
    last: torch.Tensor | None = None
    for shard in shards:
        numbers = shard.map()[NUMBERS]
        if last is not None:
            numbers = torch.cat([last, numbers])
        steps = numbers[1:] - numbers[:-1]
        if not bool((steps > 0).all() if unique else (steps >= 0).all()):
            return False
        last = numbers[-1:].clone()
    return True


def stored_numbers(shards: Sequence[Shard]) -> torch.Tensor:
    """The numbers of all samples, as they lie in the shards."""
    # Copies: otherwise every shard would stay mapped.
    numbers = [shard.map()[NUMBERS].clone() for shard in shards]
    return torch.cat(numbers) if numbers else torch.empty(0, dtype=torch.int64)


def sorted_rows(numbers: torch.Tensor, *, unique: bool) -> torch.Tensor:
    """Where the rows lie, in the order of the data set; of equal numbers the first, if unique."""
    order = torch.argsort(numbers, stable=True)
    if not unique or len(order) < 2:
        return order
    values = numbers[order]
    first = torch.ones(len(order), dtype=torch.bool)
    first[1:] = values[1:] != values[:-1]
    return order[first]


def open_shards(folder: Path, index: Index) -> list[Shard]:
    """The shards of an index, each with its header read and held against what the index says."""
    shards = []
    for entry in index.shards:
        shard = read_shard(folder / entry.file)
        if shard.size != entry.bytes:
            raise NotFeaturesError(
                f"{entry.file} has {shard.size:,} bytes, and the index says {entry.bytes:,}."
            )
        wrong = check_stored(index.kinds, entry.rows, shard.tensors)
        if wrong is not None:
            raise NotFeaturesError(f"{entry.file}: {wrong}.")
        shards.append(shard)
    return shards


def _read(data: Any, name: str) -> Index:
    if not isinstance(data, dict) or "nethook_features" not in data:
        raise NotFeaturesError(f"{name} is not an index: it lacks the field 'nethook_features'.")
    version = data["nethook_features"]
    if type(version) is not int or version != VERSION:
        raise NotFeaturesError(f"{name} is of version {version!r}; this nethook reads {VERSION}.")
    fields = {"nethook_features", "setup", "columns", "shards", "rows", "order"}
    if set(data) != fields:
        raise NotFeaturesError(f"{name} must have exactly the fields {sorted(fields)}.")
    setup, columns, rows, order = data["setup"], data["columns"], data["rows"], data["order"]
    if not isinstance(setup, dict) or not isinstance(columns, dict):
        raise NotFeaturesError(f"the setup and the columns of {name} must be mappings.")
    kinds = {column: Kind.from_dict(kind) for column, kind in columns.items()}
    if kinds and kinds.get(NUMBERS) != Kind(torch.int64):
        raise NotFeaturesError(f"{name} lacks the column {NUMBERS!r}.")
    if not isinstance(data["shards"], list):
        raise NotFeaturesError(f"{name} lacks its list of shards.")
    entries = tuple(_read_entry(entry, name) for entry in data["shards"])
    if len({entry.file for entry in entries}) != len(entries):
        raise NotFeaturesError(f"{name} names a shard twice.")
    stored = sum(entry.rows for entry in entries)
    if order not in ("stored", "index") or not _is_count(rows) or rows > stored:
        raise NotFeaturesError(f"{name} has no valid number of rows.")
    if order == "stored" and rows != stored:
        raise NotFeaturesError(f"{name} counts {rows:,} rows, and its shards {stored:,}.")
    return Index(setup, kinds, entries, rows, order)


def _read_entry(data: Any, name: str) -> Entry:
    if not isinstance(data, dict) or set(data) != {"file", "rows", "bytes"}:
        raise NotFeaturesError(f"{name} has a shard without file, rows and bytes.")
    file = data["file"]
    # The whole name: a path would lead out of the folder.
    if not isinstance(file, str) or not _SHARD_NAME.fullmatch(file):
        raise NotFeaturesError(f"{name} names {file!r}, which is not the name of a shard.")
    if not _is_count(data["rows"]) or not _is_count(data["bytes"]):
        raise NotFeaturesError(f"{name}: {file} has no valid number of rows and bytes.")
    return Entry(file, data["rows"], data["bytes"])


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def own_shards(folder: Path, rank: int) -> list[Shard]:
    """The shards that this process wrote earlier, in order, up to the first that is missing."""
    shards: list[Shard] = []
    while exists(path := folder / shard_name(rank, len(shards))):
        shards.append(read_shard(path))
    return shards


def make_folder(folder: Path) -> None:
    """Makes a folder for features, if there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # a NUL in the name
        raise FeaturesError(f"the folder {str(folder)!r} cannot be made: {error}") from error
