"""What a function warns of is said of the place that called it, not of a mode that passed it on.

Python finds that place some frames above the warning. With a mode in between it would be a line of
nethook's: the script would show a warning a second time, and filters by module would miss it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any, TextIO

from torch import overrides


def call_from_above(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], mode: CodeType
) -> Any:
    """Calls a function for a mode; its warnings name who called it outside of the mode.

    Arguments:
        mode: the code of the `__torch_function__` that passes it on.
    """
    show = warnings.showwarning

    def said(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        named, meant = _places(filename, lineno, mode)
        if named is None or meant is None:
            show(message, category, filename, lineno, file, line)
            return
        if str(named.f_globals.get("__name__")).startswith("nethook."):
            named.f_globals.pop("__warningregistry__", None)  # it was not said of this line
        warnings.showwarning = show
        try:
            warnings.warn_explicit(
                message,
                category,
                meant.f_code.co_filename,
                meant.f_lineno,
                module=meant.f_globals.get("__name__"),
                registry=meant.f_globals.setdefault("__warningregistry__", {}),
            )
        finally:
            warnings.showwarning = said

    warnings.showwarning = said
    try:
        return func(*args, **kwargs)
    finally:
        if warnings.showwarning is said:
            warnings.showwarning = show


def _places(
    filename: str, lineno: int, mode: CodeType
) -> tuple[FrameType | None, FrameType | None]:
    """The frame that a warning names, and the one it would name without a mode; None: the same."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not call_from_above.__code__:
        if (frame.f_code.co_filename, frame.f_lineno) == (filename, lineno):
            return None, None  # inside the function
        frame = frame.f_back
    meant = frame  # None in another thread
    while meant is not None and meant.f_code is not mode:
        meant = meant.f_back
    meant = meant and meant.f_back
    if meant is not None and meant.f_code is overrides.handle_torch_function.__code__:
        meant = meant.f_back and meant.f_back.f_back  # the function itself had asked for modes
    while frame is not None and meant is not None:
        if (frame.f_code.co_filename, frame.f_lineno) == (filename, lineno):
            return frame, meant
        frame, meant = frame.f_back, meant.f_back
    return None, None
