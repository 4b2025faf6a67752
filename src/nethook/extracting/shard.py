"""One file of features: safetensors, written whole or not at all, and checked before it is mapped.

The format is that of the `safetensors` library, which reads these files: eight bytes with the
length of the header, the header as JSON, then the tensors one after the other. Here it is written
batch by batch, so that a shard is never in memory twice, and its header is checked by hand, so
that a file of a stranger is mapped only if every number in it is right.
"""

from __future__ import annotations

import json
import math
import os
import stat
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import torch

from nethook import files
from nethook.errors import FeaturesError, NotFeaturesError

DTYPES: Final = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "C64": torch.complex64,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_CODES: Final = {dtype: code for code, dtype in DTYPES.items()}
_MOST_HEADER: Final = 16_000_000  # bytes; one of thousands of sites is far below


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a tensor lies in a shard: from byte `start` of the file to byte `end`."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard whose header was read and found right."""

    path: Path
    size: int
    about: Mapping[str, str]
    tensors: Mapping[str, Stored]

    def map(self) -> dict[str, torch.Tensor]:
        """The tensors, in memory only where they are read. What is written to them stays here."""
        try:
            # "c" is copy-on-write: the file is never written, and torch wants a writable array.
            whole = torch.from_numpy(np.memmap(self.path, dtype=np.uint8, mode="c"))
        except (OSError, ValueError) as error:
            raise FeaturesError(f"{self.path.name} cannot be mapped: {error}") from error
        if len(whole) != self.size:
            raise NotFeaturesError(f"{self.path.name} has changed since its header was read.")
        return {
            name: whole[stored.start : stored.end].view(stored.dtype).view(stored.shape)
            for name, stored in self.tensors.items()
        }


def dtype_code(dtype: torch.dtype) -> str | None:
    """The name of a type in a shard; None for one that cannot be stored."""
    return _CODES.get(dtype)


def stage_shard(
    path: Path, columns: Mapping[str, Sequence[torch.Tensor]], about: Mapping[str, str]
) -> tuple[Path, int]:
    """Writes a shard for `publish`, each column given as its parts; and the bytes that it has.

    The parts are contiguous and on the CPU.
    """
    # Wide types first, so that every tensor starts at a multiple of its element's size.
    names = sorted(columns, key=lambda name: (-columns[name][0].element_size(), name))
    header: dict[str, Any] = {"__metadata__": dict(sorted(about.items()))}
    end = 0
    for name in names:
        first = columns[name][0]
        rows = sum(len(piece) for piece in columns[name])
        start, end = end, end + sum(piece.nbytes for piece in columns[name])
        header[name] = {
            "dtype": _CODES[first.dtype],
            "shape": [rows, *first.shape[1:]],
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)

    def write(stream: BinaryIO) -> None:
        stream.write(struct.pack("<Q", len(text)))
        stream.write(text)
        for name in names:
            for piece in columns[name]:
                if piece.numel():
                    stream.write(piece.reshape(-1).view(torch.uint8).numpy().data)

    return stage(path, write), 8 + len(text) + end


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes a file that is there whole or not at all, also after a kill or a power cut."""
    publish(stage(path, write), path)


def stage(path: Path, write: Callable[[BinaryIO], object]) -> Path:
    """Writes a file under another name; whether it is on the disk yet is up to the system."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with _or_gone(temporary, path), temporary.open("wb") as stream:
        write(stream)
    return temporary


def publish(temporary: Path, path: Path) -> None:
    """Waits until a file is on the disk, and then gives it its name."""
    with _or_gone(temporary, path):
        files.publish(temporary, path)


@contextmanager
def _or_gone(temporary: Path, path: Path) -> Iterator[None]:
    """A block after whose failure nothing is left of a file."""
    try:
        yield
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise FeaturesError(f"{path.name} cannot be written: {error}") from error
        raise


def read_shard(path: Path) -> Shard:
    """Reads the header of a shard and checks every number in it against the file.

    Raises:
        NotFeaturesError: where the file is not one that nethook writes, or not whole.
    """
    try:
        return _read(path)
    except NotFeaturesError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise NotFeaturesError(f"{path.name} is not a shard of features: {error}") from None


def _read(path: Path) -> Shard:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise NotFeaturesError(f"{path.name} is not a file of its own but a link or a folder.")
    size = status.st_size
    with path.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else _MOST_HEADER + 1
        if length > min(_MOST_HEADER, size - 8):
            raise NotFeaturesError(f"{path.name} is cut off or is not a shard: it has no header.")
        header = json.loads(stream.read(length))
    if not isinstance(header, dict):
        raise NotFeaturesError(f"the header of {path.name} is not a mapping.")
    about = header.pop("__metadata__", {})
    texts = isinstance(about, dict) and all(isinstance(value, str) for value in about.values())
    if not texts:
        raise NotFeaturesError(f"the metadata of {path.name} are not texts.")
    begin = 8 + length
    tensors = {name: _read_tensor(path, name, row, begin) for name, row in header.items()}
    position = begin
    for tensor in sorted(tensors.values(), key=lambda stored: (stored.start, stored.end)):
        if tensor.start != position:
            raise NotFeaturesError(f"the tensors of {path.name} overlap or leave a gap.")
        position = tensor.end
    if position != size:
        raise NotFeaturesError(
            f"{path.name} has {size:,} bytes, and its header counts {position:,}: it is cut "
            "off or was changed."
        )
    return Shard(path, size, about, tensors)


def _read_tensor(path: Path, name: str, row: Any, begin: int) -> Stored:
    if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"}:
        raise NotFeaturesError(f"the header of {path.name} does not describe {name!r}.")
    code, shape, offsets = row["dtype"], row["shape"], row["data_offsets"]
    dtype = DTYPES.get(code) if isinstance(code, str) else None
    if dtype is None:
        raise NotFeaturesError(f"{name!r} in {path.name} has an unknown type.")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2 or not shape:
        raise NotFeaturesError(f"{name!r} in {path.name} has no valid shape and offsets.")
    start, end = begin + offsets[0], begin + offsets[1]
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize or start % dtype.itemsize:
        raise NotFeaturesError(f"the shape and the bytes of {name!r} in {path.name} do not agree.")
    return Stored(dtype, tuple(shape), start, end)


def _are_sizes(values: Any) -> bool:
    # A bool is an int as well, and JSON may hold numbers that no tensor has room for.
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < 2**62 for value in values
    )
