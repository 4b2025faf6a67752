"""Records of a LevelDB log, as wandb and SwanLab write them: 32 KiB blocks after a header."""

from __future__ import annotations

import struct
from pathlib import Path

BLOCK = 32 * 1024
HEADER = 7  # of the file, and of each piece: checksum, length, kind


def records(file: Path) -> list[bytes]:
    """All whole records."""
    data = file.read_bytes()
    found, piece, at = [], b"", HEADER
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        piece += data[at + HEADER : at + HEADER + length]
        at += HEADER + length
        if kind in (1, 4):  # whole, or the last of several
            found.append(piece)
            piece = b""
    return found
