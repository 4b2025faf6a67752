"""Comparing what a program has saved, byte for byte."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

# A tensor in a plain pickle is in torch's old format, which names a storage by its address.
_ADDRESS = re.compile(rb"\d{14,15}(?=q)")


def without_addresses(pickled: bytes) -> bytes:
    """A pickle with addresses of memory numbered in order: what is shared can still be seen."""
    numbers: dict[bytes, int] = {}
    return _ADDRESS.sub(lambda at: b"#%d" % numbers.setdefault(at[0], len(numbers)), pickled)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, archives by their members, with the bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                found |= {f"{name}: {each}": archive.read(each) for each in archive.namelist()}
        elif path.is_file():
            found[name] = without_addresses(path.read_bytes())
    return found
