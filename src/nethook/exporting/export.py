"""Writing a run for another program."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from nethook.errors import OptionError
from nethook.exporting.folder import to_csv, to_parquet
from nethook.exporting.tensorboard import to_tensorboard
from nethook.runs.reading.run import Run, open_run
from nethook.runs.stores import beside

FORMATS: Final[dict[str, Callable[[Run, Path], list[Path]]]] = {
    "csv": to_csv,
    "parquet": to_parquet,
    "tensorboard": to_tensorboard,
}
"""Name of a format -> what writes it."""


def export(run: Run | str | Path, to: str, folder: str | Path | None = None) -> list[Path]:
    """Write a run as `csv`, `parquet` or `tensorboard`.

    Arguments:
        run: a run, or its path or address.
        to: the format.
        folder: where to: a folder that is new or empty; else `NAME-FORMAT` beside the run, or in
            the current folder if the run is in an object store.

    Returns:
        The files that were written.
    """
    if to not in FORMATS:
        raise OptionError(f"`to` must be one of {', '.join(FORMATS)}; got {to!r}.")
    with nullcontext(run) if isinstance(run, Run) else open_run(run) as opened:
        target = (
            Path(folder) if folder is not None else beside(opened.path, f"-{to}")
        ).expanduser()
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise OptionError(
                f"`folder` must be new or empty; got {str(target)!r}, which exists. Name another "
                "one."
            )
        target.mkdir(parents=True, exist_ok=True)
        return FORMATS[to](opened, target)
