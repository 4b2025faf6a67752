"""Where in the script a loss was made."""

from __future__ import annotations

import functools
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import torch

_OURS = str(Path(__file__).parents[2])
_TORCH = str(Path(torch.__file__).parent)
_INSTALLED = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
_LANGUAGE = sysconfig.get_path("stdlib")
_DEEP = 64  # frames that are looked at


class Where(NamedTuple):
    """A line of a file."""

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """`/home/me/train.py:42 in step`."""
        return f"{self.file}:{self.line} in {self.function}"

    @property
    def short(self) -> str:
        """`train.py:42`."""
        return f"{Path(self.file).name}:{self.line}"


@functools.lru_cache(maxsize=4096)
def _rank(file: str) -> int:
    """2 for the script and its modules, 1 for libraries, 0 for torch, nethook and the language."""
    if file.startswith((_OURS, _TORCH)):
        return 0
    if file.startswith(_INSTALLED):
        return 1
    return 0 if file.startswith((_LANGUAGE, "<frozen")) else 2


def where(*, innermost: bool = False) -> Where:
    """The innermost line of the script that is under way, or else of a library.

    With `innermost` a line of a library counts as much as one of the script.
    """
    frame = sys._getframe(1)
    library = None
    for _ in range(_DEEP):
        code = frame.f_code
        rank = _rank(code.co_filename)
        if rank == 2 or (innermost and rank == 1):
            return Where(code.co_filename, frame.f_lineno, code.co_name)
        if rank == 1 and library is None:
            library = Where(code.co_filename, frame.f_lineno, code.co_name)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return library or Where("?", 0, "?")
