"""The line of the user's code that runs now: the innermost frame outside torch and nethook."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import torch

_TORCH = f"{Path(torch.__file__).parent}{os.sep}"
_NETHOOK = f"{Path(__file__).resolve().parents[1]}{os.sep}"
# Frames of torch that call modules or functions and say nothing about which.
_MACHINERY = frozenset(
    _TORCH + each.replace("/", os.sep)
    for each in (
        "nn/modules/module.py", "nn/functional.py", "overrides.py", "utils/_contextlib.py",
        "_jit_internal.py", "functional.py", "_tensor.py", "_compile.py", "utils/_device.py",
    )
)  # fmt: skip


class Source(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def source_here(stop: FrameType | None = None) -> Source | None:
    """Where the user's code is now, looking outwards as far as the frame `stop`.

    Where nothing but torch lies between, as inside `nn.Transformer`, it is the innermost line of
    torch that is not its machinery.
    """
    inside_torch: Source | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not stop:
        kind = _kind(frame.f_code.co_filename)
        if kind == "user":
            return Source(frame.f_code.co_filename, frame.f_lineno)
        if kind == "torch" and inside_torch is None:
            inside_torch = Source(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return inside_torch


@lru_cache(maxsize=4096)
def _kind(file: str) -> str:
    made = file == "<string>" or file.startswith("<frozen ")  # code that has no file
    if made or file.startswith(_NETHOOK) or file in _MACHINERY:
        return "machinery"
    return "torch" if file.startswith(_TORCH) else "user"
