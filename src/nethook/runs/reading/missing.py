"""What to say of a run that is not there."""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path


def no_run(path: Path) -> str:
    """There is no such file; perhaps one with a name like it."""
    message = f"there is no run {str(path)!r}."
    with suppress(OSError, ValueError):  # no such folder, or one that may not be read
        others = [other.name for other in path.parent.iterdir() if other.suffix == ".db"]
        if close := get_close_matches(path.name, others, n=1):
            message += f" Did you mean {str(path.with_name(close[0]))!r}?"
    return message


def not_beside(path: Path) -> str:
    """A rank's file is something else than a file."""
    return (
        f"{str(path)!r} is not a regular file: the files of a run's ranks lie in one folder, and "
        "links that lead elsewhere are not followed. Name it alone to open it."
    )
