"""Histograms and unit bits of a block of series, packed.

Histograms: 1 byte (bytes per count: 1, 2, 4 or 8), then zlib of: one bit per bin of each of the
block's rows (is it there?), then the counts that are there, sorted by the place of their bytes.
Unit bits: zlib of one bit per unit, the series of the block one after the other.
"""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from nethook.errors import NotARunError
from nethook.runs.format.packing import inflate
from nethook.runs.format.schema import HISTOGRAM_BLOCK as ROWS
from nethook.stats.fields import BINS

Counts = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]

_EFFORT: Final = 4
_MASK_BYTES: Final = ROWS * BINS // 8  # 16 rows: whole bytes


def pack_counts(counts: Counts) -> bytes:
    """Histograms (rows, BINS) of at most one block as bytes."""
    flat = np.zeros(ROWS * BINS, dtype=np.int64)
    flat[: counts.size] = counts.ravel()
    there = flat != 0
    values = flat[there]
    top = int(values.max(initial=0))
    size = next(size for size in (1, 2, 4, 8) if top < 1 << 8 * size)
    planes = values.astype(f"<u{size}").view(np.uint8).reshape(-1, size).T
    return bytes((size,)) + zlib.compress(np.packbits(there).tobytes() + planes.tobytes(), _EFFORT)


def unpack_counts(data: object) -> Counts:
    """The histograms (ROWS, BINS) that were packed."""
    if not isinstance(data, bytes) or len(data) < 2 or data[0] not in (1, 2, 4, 8):
        raise NotARunError("a packed histogram is not one that nethook writes")
    size = data[0]
    raw = inflate(data[1:], _MASK_BYTES + ROWS * BINS * size)
    if len(raw) < _MASK_BYTES:
        raise NotARunError("a packed histogram is cut short")
    there = np.unpackbits(np.frombuffer(raw, np.uint8, _MASK_BYTES)).astype(bool)
    planes = np.frombuffer(raw, np.uint8, offset=_MASK_BYTES)
    if planes.size != int(there.sum()) * size:
        raise NotARunError("a packed histogram does not have the counts that it names")
    flat = np.zeros(ROWS * BINS, dtype=np.int64)
    if planes.size:
        values = np.ascontiguousarray(planes.reshape(size, -1).T).view(f"<u{size}")[:, 0]
        flat[there] = values.astype(np.int64)
    if flat.min() < 0:
        raise NotARunError("a packed histogram has counts beyond what can be counted")
    return flat.reshape(ROWS, BINS)


def pack_bits(bits: Bits) -> bytes:
    """Unit bits (one byte per unit, 0 or 1) as bytes."""
    return zlib.compress(np.packbits(bits).tobytes(), _EFFORT)


def unpack_bits(data: object, units: int) -> Bits:
    """Unit bits, one byte per unit; units that came later than the record are 0."""
    if not isinstance(data, bytes):
        raise NotARunError("packed unit bits are not bytes")
    raw = inflate(data, (units + 7) // 8)
    bits = np.zeros(units, dtype=np.uint8)
    unpacked = np.unpackbits(np.frombuffer(raw, np.uint8))[:units]
    bits[: unpacked.size] = unpacked
    return bits
