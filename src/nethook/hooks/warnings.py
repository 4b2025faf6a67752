"""Functions that a warning looks through, as it looks through the import system.

`warnings.warn(…, stacklevel=2)` names the caller of a torch function. Where nethook has wrapped
that function, the caller would be nethook, and the warning would name another line and be shown
another number of times. Python passes over frames of its import system, which it tells by the
names of their files.
"""

from __future__ import annotations

from types import FunctionType
from typing import Final

_MARK: Final = " (hidden like importlib._bootstrap)"


def hide_from_warnings(function: object) -> None:
    """Has warnings look through a function of nethook's. A second call does nothing."""
    if isinstance(function, FunctionType) and not function.__code__.co_filename.endswith(_MARK):
        code = function.__code__
        function.__code__ = code.replace(co_filename=code.co_filename + _MARK)
