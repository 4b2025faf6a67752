"""Numbers packed without loss: a column in the fewest bytes that hold it, then compressed.

A packed matrix is

    1 byte           columns
    2 bytes          rows (little-endian, as everything here)
    1 byte a column  how it is kept: its place in KINDS
    the rest         zlib: the columns' bytes, one after the other

A column is kept as the smallest type that gives back every one of its values bit for bit. Its bytes
are sorted by their place in the number (first the lowest bytes of all rows, then the next), since
signs and exponents of neighbours resemble one another and the low bytes do not.
"""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from nethook.errors import NotARunError

Matrix = npt.NDArray[np.float64]

KINDS: Final = ("zero", "same", "<u1", "<i1", "<u2", "<i2", "<u4", "<i4", "<f4", "<f8")
"""How a column is kept: not at all, as one float64 for all rows, or as one of these types."""

_ZERO, _SAME, _FIRST_INTEGER, _SINGLE, _DOUBLE = 0, 1, 2, 8, 9
_SIZES: Final = (0, 0, 1, 1, 2, 2, 4, 4, 4, 8)
_LOWS: Final = np.array([np.iinfo(kind).min for kind in KINDS[2:8]], dtype=np.float64)
_HIGHS: Final = np.array([np.iinfo(kind).max for kind in KINDS[2:8]], dtype=np.float64)
_EFFORT: Final = 4  # of zlib: more takes much longer for a hundredth of the size
MAX_ROWS: Final = (1 << 16) - 1


def pack(matrix: Matrix) -> bytes:
    """A matrix (rows, columns) of float64 as bytes."""
    matrix = np.ascontiguousarray(matrix, dtype="<f8")
    rows, columns = matrix.shape
    kinds = _kinds(matrix)
    parts = []
    for at, kind in enumerate(kinds):
        if kind == _SAME:
            parts.append(matrix[0, at].tobytes())
        elif kind:
            parts.append(_planes(matrix[:, at].astype(KINDS[kind])))
    head = bytes((columns, rows & 255, rows >> 8, *kinds))
    return head + zlib.compress(b"".join(parts), _EFFORT)


def unpack(data: object, *, columns: int, max_rows: int) -> Matrix:
    """The matrix that was packed; nothing larger than what was expected is ever unpacked."""
    if not isinstance(data, bytes) or len(data) < 3 + columns or data[0] != columns:
        raise NotARunError(f"a packed record does not have the {columns} columns that belong there")
    rows = data[1] | data[2] << 8
    kinds = data[3 : 3 + columns]
    if rows > max_rows or max(kinds, default=0) >= len(KINDS):
        raise NotARunError(f"a packed record of {rows} rows is not one that nethook writes")
    size = sum(8 if kind == _SAME else rows * _SIZES[kind] for kind in kinds)
    raw = inflate(data[3 + columns :], size)
    if len(raw) != size:
        raise NotARunError(f"a packed record has {len(raw):,} bytes where {size:,} belong")
    matrix = np.zeros((rows, columns))
    place = at = 0
    while at < columns:
        kind, width = kinds[at], 1
        if kind == _SAME:
            matrix[:, at] = np.frombuffer(raw, "<f8", 1, place)[0]
            place += 8
        elif kind:
            while at + width < columns and kinds[at + width] == kind:
                width += 1  # neighbours of one kind are unpacked at once
            shape = (width, _SIZES[kind], rows)
            planes = np.frombuffer(raw, np.uint8, width * _SIZES[kind] * rows, place)
            numbers = np.ascontiguousarray(planes.reshape(shape).transpose(2, 0, 1))
            matrix[:, at : at + width] = numbers.view(KINDS[kind])[:, :, 0]
            place += planes.size
        at += width
    return matrix


def inflate(data: bytes, most: int) -> bytes:
    """Decompress what may be `most` bytes: a bomb stops one byte later."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(data, most + 1)
    except zlib.error as error:
        raise NotARunError(f"a packed record is damaged: {error}") from None
    if len(raw) > most or not stream.eof:
        raise NotARunError(f"a packed record unpacks to more than the {most:,} bytes it may have")
    return raw


def _kinds(matrix: npt.NDArray[np.float64]) -> list[int]:
    """The smallest kind for each column; comparing bits keeps −0 and NaN as they are."""
    rows, columns = matrix.shape
    if rows == 0:
        return [_ZERO] * columns
    bits = matrix.view(np.int64)
    same = (bits == bits[0]).all(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        whole = (matrix.astype(np.int64).astype(np.float64).view(np.int64) == bits).all(axis=0)
        single = (matrix.astype(np.float32).astype(np.float64).view(np.int64) == bits).all(axis=0)
        low, high = matrix.min(axis=0), matrix.max(axis=0)
    kinds = np.where(single, _SINGLE, _DOUBLE)
    if whole.any():
        fits = (low[:, None] >= _LOWS) & (high[:, None] <= _HIGHS)  # (columns, integer kinds)
        kinds = np.where(whole & fits.any(axis=1), _FIRST_INTEGER + fits.argmax(axis=1), kinds)
    kinds = np.where(same, np.where(bits[0] == 0, _ZERO, _SAME), kinds)
    return [int(kind) for kind in kinds]


def _planes(column: npt.NDArray[np.generic]) -> bytes:
    """The bytes of a column, sorted by their place in the number."""
    return column.view(np.uint8).reshape(len(column), -1).T.tobytes()
