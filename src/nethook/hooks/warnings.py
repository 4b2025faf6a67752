"""Warnings of a script come from the same lines, and as often, as without nethook.

`warnings.warn(…, stacklevel=2)` names the caller of a torch function. Where nethook has wrapped
that function, the caller would be nethook, and the warning would name another line and be shown
another number of times. Python passes over frames of its import system, which it tells by the
names of their files.

Python also forgets which warnings it has shown when their filters change, even if only for a
moment, and shows them again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Final

_FORGET: Final = ("_filters_mutated", "_filters_mutated_lock_held")
_MARK: Final = " (hidden like importlib._bootstrap)"


def hide_from_warnings(function: object) -> None:
    """Has warnings look through a function of nethook's. A second call does nothing."""
    if isinstance(function, FunctionType) and not function.__code__.co_filename.endswith(_MARK):
        code = function.__code__
        function.__code__ = code.replace(co_filename=code.co_filename + _MARK)


@contextmanager
def warnings_stay_shown() -> Iterator[None]:
    """Around what changes filters of warnings and puts them back: what was shown stays shown."""
    # What `catch_warnings` calls has another name in newer Pythons; where it has none of these,
    # a warning may be shown once more.
    module = vars(warnings)
    forget: dict[str, object] = {name: module[name] for name in _FORGET if name in module}
    module.update(dict.fromkeys(forget, _nothing))
    try:
        yield
    finally:
        module.update(forget)


def _nothing() -> None:
    """In place of forgetting."""
