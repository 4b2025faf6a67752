"""The line of the user's code that is running now."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, Literal, NamedTuple

import torch

_Kind = Literal["script", "library", "language", "made", "torch", "machinery"]

_TORCH: Final = f"{Path(torch.__file__).parent}{os.sep}"
_NETHOOK: Final = f"{Path(__file__).resolve().parents[2]}{os.sep}"
_INSTALLED: Final = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
_LANGUAGE: Final = (sysconfig.get_path("stdlib"), "<frozen ")
# Frames of torch that call modules or functions and say nothing about which.
_MACHINERY: Final = frozenset(
    _TORCH + file.replace("/", os.sep)
    for file in (
        "nn/modules/module.py", "nn/functional.py", "overrides.py", "utils/_contextlib.py",
        "_jit_internal.py", "functional.py", "_tensor.py", "_compile.py", "utils/_device.py",
    )
)  # fmt: skip
# Frames that are looked at for a line of the script. A trainer may have dozens between that line
# and a loss; the bound is for code that recurses deeply.
_DEEP: Final = 64


class Source(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


class ScriptLine(NamedTuple):
    """A line of a file, and the function that it is in."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"

    @property
    def text(self) -> str:
        """`/home/me/train.py:42 in step`."""
        return f"{self.file}:{self.line} in {self.function}"


def line_of_model(stop: FrameType | None = None) -> Source | None:
    """The innermost line outside torch and nethook, looking outwards as far as the frame `stop`.

    For what happens inside a model, which may well be a library's. Where nothing but torch lies
    between, as inside `nn.Transformer`, it is the innermost line of torch that is not its
    machinery.
    """
    inside_torch: Source | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not stop:
        kind = _kind(frame.f_code.co_filename)
        if kind in ("script", "library") or (kind == "language" and not _is_frozen(frame)):
            return Source(frame.f_code.co_filename, frame.f_lineno)
        if kind == "torch" and inside_torch is None:
            inside_torch = Source(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return inside_torch


class LastLine:
    """The line of the script, for who asks in every step from the same line, as nearly always.

    Python finds a frame that is so many calls away without making objects of those in between, so
    the one in which the line was the last time is looked at first.
    """

    __slots__ = ("_code", "_depth", "_instruction", "_line")

    def __init__(self) -> None:
        self._code: CodeType | None = None
        self._depth = 0
        self._instruction = -1
        self._line = ScriptLine("?", 0, "?")

    def find(self, own: int = 0) -> ScriptLine:
        """The same object as the last time where it is the same line; `own`: as below."""
        try:
            frame: FrameType | None = sys._getframe(self._depth + own)
        except ValueError:  # there are not so many
            frame = None
        if frame is not None and frame.f_code is self._code and frame.f_lasti == self._instruction:
            return self._line
        self._code, frame, depth = None, sys._getframe(1 + own), 1
        self._line = line = line_of_script(own=own + 1)
        while frame is not None and depth < _DEEP:
            code = frame.f_code
            known = _LINES.get((id(code), frame.f_lasti))
            if known is not None and known[1] is line:
                self._code, self._depth, self._instruction = code, depth, frame.f_lasti
                break
            frame, depth = frame.f_back, depth + 1
        return line


def line_of_script(*, or_library: bool = False, own: int = 0) -> ScriptLine:
    """The innermost line of the script; of a library where there is none.

    For what a training loop does: a trainer's line says less than the script's. With `or_library`
    a line of a library counts as much as one of the script. `own` frames are known to be nethook's:
    Python makes an object of every frame that is looked at, and this is asked in every step.
    """
    frame: FrameType | None = sys._getframe(1 + own)
    library: FrameType | None = None
    for _ in range(_DEEP):
        if frame is None:
            break
        kind = _kind(frame.f_code.co_filename)
        if kind in ("script", "made") or (or_library and kind == "library"):
            return _script_line(frame)
        if kind == "library" and library is None:
            library = frame
        frame = frame.f_back
    return ScriptLine("?", 0, "?") if library is None else _script_line(library)


def library_calls() -> Iterator[tuple[ScriptLine, CodeType]]:
    """Lines of the script that have called a library, innermost first, and the function of it.

    Lines with nothing but torch, or the script itself, between them and the next are left out.
    """
    frame: FrameType | None = sys._getframe(1)
    called: CodeType | None = None
    for _ in range(2 * _DEEP):
        if frame is None:
            return
        kind = _kind(frame.f_code.co_filename)
        if kind in ("script", "made"):
            if called is not None:
                yield _script_line(frame), called
            called = None
        elif kind == "library":
            called = frame.f_code
        frame = frame.f_back


def _script_line(frame: FrameType) -> ScriptLine:
    code = frame.f_code
    # Neither the number of a line nor the hash of a code object is to be had without some work.
    known = _LINES.get((id(code), frame.f_lasti))
    if known is not None:
        return known[1]
    line = ScriptLine(code.co_filename, frame.f_lineno, code.co_name)
    if len(_LINES) < _MOST_LINES:
        _LINES[id(code), frame.f_lasti] = (code, line)
    return line


_MOST_LINES: Final = 4096
# The lines that were asked for, by code object and instruction; the code object is held, so that
# its `id` is nobody else's.
_LINES: Final[dict[tuple[int, int], tuple[CodeType, ScriptLine]]] = {}


def _is_frozen(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith("<frozen ")


@lru_cache(maxsize=4096)
def _kind(file: str) -> _Kind:
    """Whose code a file is. "made" has none: a program given as text, or a generated method."""
    if file.startswith(_NETHOOK) or file in _MACHINERY:
        return "machinery"
    if file.startswith(_TORCH):
        return "torch"
    if file.startswith(_INSTALLED):
        return "library"
    if file.startswith(_LANGUAGE):
        return "language"
    return "made" if file == "<string>" else "script"
