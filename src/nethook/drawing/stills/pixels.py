"""Arrays of numbers as pixels: colours of a scale, and PNG without a library."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]


def coloured(
    values: npt.NDArray[np.floating[Any]], scale: Sequence[Sequence[Any]], low: float, high: float
) -> Pixels:
    """Values (rows, columns) as RGBA (rows, columns, 4); what is missing is transparent.

    Arguments:
        values: numbers.
        scale: colours at fractions, as Plotly has them: `[[0, "#440154"], …, [1, "#fde725"]]`, or
            `"rgba(68,1,84,0.5)"` where something is seen through.
        low, high: the values of the first and the last colour; beyond them these two stay.
    """
    stops = np.array([float(stop) for stop, _ in scale])
    colours = np.array([_rgba(str(colour)) for _, colour in scale], dtype=float)
    there = np.isfinite(values)
    parts = (np.where(there, values, low) - low) / ((high - low) or 1.0)
    channels = [np.interp(parts, stops, colours[:, channel]) for channel in range(4)]
    channels[3] = np.where(there, channels[3], 0.0)
    pixels: Pixels = np.rint(np.stack(channels, axis=-1)).astype(np.uint8)
    return pixels


def data_uri(pixels: Pixels) -> str:
    """RGB or RGBA pixels (rows, columns, channels) as the address of a PNG."""
    return f"data:image/png;base64,{base64.b64encode(png(pixels)).decode()}"


def png(pixels: Pixels) -> bytes:
    """RGB or RGBA pixels (rows, columns, channels) as a PNG."""
    rows, columns, channels = pixels.shape
    head = struct.pack(">IIBBBBB", columns, rows, 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    # Each row begins with the number of its filter; 0 is none.
    filtered = np.concatenate(
        [np.zeros((rows, 1), np.uint8), np.ascontiguousarray(pixels).reshape(rows, -1)], axis=1
    )
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(filtered.tobytes(), 6)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _rgba(colour: str) -> tuple[float, ...]:
    if colour.startswith("rgba("):
        *channels, opacity = (float(part) for part in colour[5:-1].split(","))
        return *channels, 255 * opacity
    return *(int(colour[start : start + 2], 16) for start in (1, 3, 5)), 255
