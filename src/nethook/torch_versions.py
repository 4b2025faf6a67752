"""Which torch nethook needs, and one sentence for whoever has an older one.

Nothing is imported to find out: the version of a torch that is not loaded yet is read from what its
installation left on disk. `import nethook` and `nethook --help` stay light, and reading a run works
where there is no torch at all.
"""

from __future__ import annotations

import re
import sys
from typing import Final

from nethook.errors import OldTorchError

OLDEST: Final = (2, 8)
"""As in the dependencies of pyproject.toml."""
NEWEST: Final = (2, 15)
"""The newest that the test suite passes on. A newer one works, unless it has changed too much."""


def refuse_old_torch() -> None:
    """Does nothing with a torch that is new enough, or where there is none.

    Raises:
        OldTorchError: torch is older than `OLDEST`.
    """
    installed = torch_version()
    if installed is None:
        return
    if release(installed) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise OldTorchError(
            f"nethook needs torch {oldest} or newer, and torch {installed} is installed: "
            f"pip install --upgrade 'torch>={oldest}'"
        )


def torch_version() -> str | None:
    """The version of torch, without importing it; None where it is not installed."""
    loaded = sys.modules.get("torch")
    if loaded is not None:
        version = getattr(loaded, "__version__", None)  # None while it is being imported
        if version is not None:
            return str(version)
    from importlib import metadata

    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:  # or built in its own folder, and never installed
        return None


def release(version: str) -> tuple[int, int]:
    """The first two numbers of a version: (2, 15) of "2.15.0+cpu".

    A torch between two releases (`2.16.0.dev20261116`, `2.8.0a0+gitba56102`) counts as the later
    one. What cannot be read is taken for a build of somebody's own, and for the newest.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else NEWEST


def window() -> str:
    """The versions that nethook was tested with, in words."""
    return f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
