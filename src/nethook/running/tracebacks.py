"""Errors of a script, shown as bare Python shows them: without nethook's frames."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, TracebackType
from typing import Final

from nethook.errors import NethookError
from nethook.running.program import TOP_CODE

_PACKAGE: Final = Path(__file__).parents[1]
_ERRORS: Final = f"{NethookError.__module__}."
_RUNNING: Final = f"{_PACKAGE / 'running'}/"
# What nethook puts between a script and torch by itself. Where a script uses nethook (`trace`,
# `edit`), the frames of that are in its tracebacks as they always are.
_OURS: Final = tuple(
    f"{_PACKAGE / room}/" for room in ("running", "watching", "hooks", "runs", "stats", "addresses")
)

_RUNPY: Final = "<frozen runpy>"


def show(error: BaseException) -> None:
    """What the interpreter does with an error that nobody caught, but for its exit."""
    clean(error)
    kind, tb = type(error), error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, tb
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        sys.stderr.write("sys.excepthook is missing\n")
        hook = sys.__excepthook__
    try:
        hook(kind, error, tb)
    except SystemExit:
        raise
    except BaseException as second:
        clean(second)
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(second), second, second.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(kind, error, tb)


def clean(error: BaseException) -> None:
    """Takes nethook's frames out of the tracebacks of an error and of all that belong to it."""
    for member in _family(error):
        if not isinstance(member, NethookError):  # that one was asked for
            member.__traceback__ = _cleaned(member.__traceback__)


def _family(error: BaseException) -> Iterator[BaseException]:
    """An error, its causes and contexts, and the members of groups, each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        member = waiting.pop()
        if id(member) in seen:
            continue
        seen.add(id(member))
        yield member
        waiting += [other for other in (member.__cause__, member.__context__) if other is not None]
        if isinstance(member, BaseExceptionGroup):
            waiting += member.exceptions


def _cleaned(tb: TracebackType | None) -> TracebackType | None:
    entries: list[TracebackType] = []
    while tb is not None:
        entries.append(tb)
        tb = tb.tb_next
    codes = [entry.tb_frame.f_code for entry in entries]
    # What led to the script; an error in reading it (its syntax) has nothing else.
    start = max((index for index, code in enumerate(codes) if code is TOP_CODE), default=-1) + 1
    if start == 0 and all(code.co_filename.startswith(_RUNNING) for code in codes):
        start = len(entries)
    kept = [
        entry
        for entry, code in zip(entries[start:], codes[start:], strict=True)
        if not code.co_filename.startswith(_OURS)
    ]
    linked: TracebackType | None = None
    for entry in reversed(kept):
        linked = TracebackType(linked, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return linked


def reached_script(error: BaseException) -> bool:
    """Whether a line of the script was executed before this error.

    Where there is no such script or module, Python itself ends the process.
    """
    codes: list[CodeType] = []
    tb = error.__traceback__
    while tb is not None:
        codes.append(tb.tb_frame.f_code)
        tb = tb.tb_next
    above = max((index for index, code in enumerate(codes) if code is TOP_CODE), default=len(codes))
    return any(code.co_filename != _RUNPY for code in codes[above + 1 :])


def one_line(error: BaseException) -> str:
    """An error in one line: its type and what it says."""
    return traceback.format_exception_only(type(error), error)[-1].strip().removeprefix(_ERRORS)
