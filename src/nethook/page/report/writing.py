"""Pages that are there as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

from nethook.errors import OptionError
from nethook.files import whole_path, write_file


def write_whole(target: Path, text: str) -> Path:
    """Write a page; its folder is made.

    Raises:
        OptionError: it cannot be written there.
    """
    try:
        path = whole_path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text.encode("utf-8", "backslashreplace"))
    except (OSError, ValueError) as error:
        raise OptionError(
            f"`to` must be a file that can be written; got {str(target)!r:.200} ({error})."
        ) from None
    return target.expanduser()
