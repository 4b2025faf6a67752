"""Numbers packed without loss: a column in the fewest bytes that hold it, then compressed.

A packed matrix is

    1 byte             columns
    2 bytes            rows (little-endian, as everything here); the top bit: not compressed
    1 byte per column  how it is kept: its place in KINDS
    the rest           the columns' bytes, one after the other; by zlib, where that is worth it

A column is kept as the smallest type that gives back every one of its values bit for bit. Its bytes
are sorted by their place in the number (first the lowest bytes of all rows, then the next), since
signs and exponents of neighbours resemble one another and the low bytes do not.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from nethook.errors import NotARunError
from nethook.stats.native import kernel

Matrix = npt.NDArray[np.float64]

KINDS: Final = ("zero", "same", "<u1", "<i1", "<u2", "<i2", "<u4", "<i4", "<f4", "<f8", "f3")
"""How a column is kept: not at all, as one float64 for all rows, or as one of these types.

f3 is a float32 without its lowest byte, which is zero in all rows."""

# The numbers of kinds are in files: KINDS may grow at its end, and never change its order.
_ZERO, _SAME, _FIRST_INTEGER, _SINGLE, _DOUBLE, _SHORT = 0, 1, 2, 8, 9, 10
_SIZES: Final = (0, 0, 1, 1, 2, 2, 4, 4, 4, 8, 3)  # bytes per row, in the order of KINDS
# The integers of KINDS go from small to large: the first whose range holds a column is the one.
_LOWS: Final = np.array([np.iinfo(kind).min for kind in KINDS[2:8]], dtype=np.float64)
_HIGHS: Final = np.array([np.iinfo(kind).max for kind in KINDS[2:8]], dtype=np.float64)
_EFFORT: Final = 4  # of zlib: more takes much longer for a hundredth of the size
# In the upper byte of the rows, of which a record has 64 or 512: the bytes are not compressed.
_PLAIN: Final = 0x80


def pack(matrix: Matrix, worth: float = 0.97) -> bytes:
    """A matrix (rows, columns) of float64 as bytes.

    `worth` is the part of its size that compression must reach: unpacking takes time as well. With
    0 it is not tried.
    """
    matrix = np.ascontiguousarray(matrix, dtype="<f8")
    rows, columns = matrix.shape
    if kernel.functions is not None:
        head, body = kernel.functions.pack_matrix(matrix.ctypes.data, rows, columns)
        return compressed(head, body, worth)
    kinds = _kinds(matrix)
    parts = []
    for column, kind in enumerate(kinds):
        if kind == _SAME:
            parts.append(matrix[0, column].tobytes())
        elif kind == _SHORT:
            parts.append(_planes(matrix[:, column].astype("<f4"))[rows:])
        elif kind:
            parts.append(_planes(matrix[:, column].astype(KINDS[kind])))
    return compressed(bytes((columns, rows & 255, rows >> 8, *kinds)), b"".join(parts), worth)


def compressed(head: bytes, body: bytes, worth: float = 0.97) -> bytes:
    """A packed matrix from its head, as of one that is compressed, and its columns' bytes."""
    if worth > 0:
        packed = zlib.compress(body, _EFFORT)
        if len(packed) < worth * len(body):
            return head + packed
    return head[:2] + bytes((head[2] | _PLAIN,)) + head[3:] + body


def unpack(data: object, *, columns: int, max_rows: int) -> Matrix:
    """The matrix that was packed; nothing larger than what was expected is ever unpacked."""
    ((_, matrices),) = unpack_many([data], columns=columns, max_rows=max_rows)
    only: Matrix = matrices[0]
    return only


def unpack_many(
    records: Sequence[object], *, columns: int, max_rows: int
) -> Iterator[tuple[list[int], Matrix]]:
    """Many matrices at once: which of the records, and their matrices (n, rows, columns).

    Records whose columns are kept in the same way, as nearly all neighbours are, are unpacked
    together, in a tenth of the time that one after the other would take.
    """
    alike: dict[bytes, list[int]] = {}
    for index, data in enumerate(records):
        if not isinstance(data, bytes) or len(data) < 3 + columns or data[0] != columns:
            raise NotARunError(f"a packed record does not have the {columns} columns it should")
        alike.setdefault(data[: 3 + columns], []).append(index)
    for head, which in alike.items():
        rows, kinds = head[1] | (head[2] & ~_PLAIN) << 8, head[3:]
        if rows > max_rows or max(kinds, default=0) >= len(KINDS):
            raise NotARunError(f"a packed record of {rows} rows is not one that nethook writes")
        size = sum(8 if kind == _SAME else rows * _SIZES[kind] for kind in kinds)
        raw = []
        for index in which:
            data = records[index]
            assert isinstance(data, bytes)  # see above
            rest = data[3 + columns :]
            raw.append(rest if head[2] & _PLAIN else inflate(rest, size))
            if len(raw[-1]) != size:
                raise NotARunError(f"a packed record has {len(raw[-1]):,} bytes and not {size:,}")
        table = np.frombuffer(b"".join(raw), np.uint8).reshape(len(which), size)
        yield which, _unpack_alike(table, rows, kinds)


def _unpack_alike(raw: npt.NDArray[np.uint8], rows: int, kinds: bytes) -> Matrix:
    """Matrices (n, rows, columns) from their bytes (n, size), columns being kept as `kinds` say."""
    matrices = np.zeros((len(raw), rows, len(kinds)))
    offset = column = 0
    while column < len(kinds):
        kind, width = kinds[column], 1
        if kind == _SAME:
            value = np.ascontiguousarray(raw[:, offset : offset + 8]).view("<f8")  # (n, 1)
            matrices[:, :, column] = value
            offset += 8
        elif kind:
            while column + width < len(kinds) and kinds[column + width] == kind:
                width += 1  # neighbours of one kind, at once
            size = width * _SIZES[kind] * rows
            planes = raw[:, offset : offset + size].reshape(-1, width, _SIZES[kind], rows)
            if kind == _SHORT:
                planes = np.concatenate((np.zeros_like(planes[:, :, :1]), planes), axis=2)
            numbers = np.ascontiguousarray(planes.transpose(0, 3, 1, 2))
            typed = numbers.view("<f4" if kind == _SHORT else KINDS[kind])
            matrices[:, :, column : column + width] = typed[..., 0]
            offset += size
        column += width
    return matrices


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
    """The smallest kind for each column; comparing bits keeps −0 and NaN as they are.

    Each test is a round trip: a column is `whole` where float64 -> int64 -> float64 changes no bit,
    `exact` where float32 does not, and `short` where float32 has nothing in its lowest byte either.
    What int64 or float32 cannot hold comes back as something else, so it needs no test of its own.
    """
    rows, columns = matrix.shape
    if rows == 0:
        return [_ZERO] * columns
    bits = matrix.view(np.int64)
    same = (bits == bits[0]).all(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        single = matrix.astype(np.float32)
        whole = (matrix.astype(np.int64).astype(np.float64).view(np.int64) == bits).all(axis=0)
        exact = (single.astype(np.float64).view(np.int64) == bits).all(axis=0)
        short = exact & ((single.view(np.uint32) & 0xFF) == 0).all(axis=0)
        low, high = matrix.min(axis=0), matrix.max(axis=0)
    kinds = np.where(short, _SHORT, np.where(exact, _SINGLE, _DOUBLE))
    if whole.any():
        fits = (low[:, None] >= _LOWS) & (high[:, None] <= _HIGHS)  # (columns, integer kinds)
        kinds = np.where(whole & fits.any(axis=1), _FIRST_INTEGER + fits.argmax(axis=1), kinds)
    kinds = np.where(same, np.where(bits[0] == 0, _ZERO, _SAME), kinds)
    return [int(kind) for kind in kinds]


def _planes(column: npt.NDArray[np.generic]) -> bytes:
    """The bytes of a column, sorted by their place in the number."""
    return column.view(np.uint8).reshape(len(column), -1).T.tobytes()
