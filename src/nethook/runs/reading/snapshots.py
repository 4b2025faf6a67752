"""Snapshots of outputs, unpacked from a file that may come from a stranger."""

from __future__ import annotations

import math
import zlib

import numpy as np
import numpy.typing as npt

from nethook.errors import NotARunError
from nethook.runs.format.schema import MAX_SNAPSHOT
from nethook.runs.format.texts import from_json


def unpack_snapshot(shape: object, data: object) -> npt.NDArray[np.float32]:
    """The values of a snapshot, its shape and size held against what nethook writes."""
    sizes = from_json(shape)
    if not isinstance(sizes, list) or not all(
        isinstance(size, int) and 0 <= size <= MAX_SNAPSHOT for size in sizes
    ):
        raise NotARunError("a snapshot in the file has no shape")
    count = math.prod(sizes)
    if not isinstance(data, bytes) or not 0 < count <= MAX_SNAPSHOT:
        raise NotARunError("a snapshot in the file is larger than any that nethook writes")
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(data, 4 * count + 1)
    except zlib.error as error:
        raise NotARunError(f"a snapshot in the file cannot be unpacked: {error}") from None
    if len(raw) != 4 * count:
        raise NotARunError("a snapshot in the file does not have the size of its shape")
    return np.frombuffer(raw, "<f4").reshape(sizes)
