"""A line of the user's code, as programs want it: a file and a number."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple
from urllib.parse import quote

from nethook.text.findings import Finding, places


class Place(NamedTuple):
    """A file, as it was recorded, and a line in it, from 1."""

    file: str
    line: int

    @property
    def uri(self) -> str:
        """The file as a URI: relative as it is, an absolute one with `file://`."""
        path = PurePath(self.file)
        return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def place_of(text: str) -> Place | None:
    """`train.py:42` in parts; None where there is no line number in it."""
    file, _, number = text.rpartition(":")
    if not file or not number.isascii() or not number.isdigit() or int(number) < 1:
        return None
    return Place(file, int(number))


def places_of(finding: Finding) -> list[Place]:
    """The first lines that a finding names, their files relative to this folder where they can be.

    Code hosts know files by their path in the repository.
    """
    return [place for place in map(place_of, places(finding)) if place is not None]
