"""Studies that were saved: those beside a run, or those that somebody names.

Results of `nethook.interp` are two files each, and hold no code. A run shows what lies in the
folder of its name: `runs/mnist.studies/*.json` stand beside `runs/mnist.db`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from nethook.drawing.data import Spec
from nethook.files import is_file
from nethook.text.escape import shorten
from nethook.text.table import Table

ENDING: Final = ".studies"
MOST: Final = 40
"""Studies of a folder that are shown, by name."""
_LARGEST: Final = 200_000_000  # bytes of a study that is read to be shown

Stamp = tuple[int, ...]


@dataclass(frozen=True)
class StudyFile:
    """A study that lies there: its file, what to call it, and what changes when it does."""

    path: Path
    name: str
    stamp: Stamp


@dataclass(frozen=True, eq=False)
class Study:
    """A study as it is shown. `problem` says why something of it is not."""

    title: str
    table: Table | None = None
    figure: Spec | None = None
    problem: str = ""
    has_data: bool = False  # inputs are in it, and can be recognized in its figure


def folder_beside(run: Path) -> Path:
    """Where the studies of a run are; of all its ranks, the same."""
    return run.with_name(run.stem.partition(".rank")[0] + ENDING)


def studies_in(place: Path) -> list[StudyFile]:
    """The study of this name, or those in this folder, by name; links are not followed."""
    try:
        paths = [place] if is_file(place) else sorted(place.iterdir())
        if place.is_symlink():
            return []
    except (OSError, ValueError):
        return []
    found = []
    for path in paths:
        parts = (path, path.with_suffix(".safetensors"))
        if path.suffix != ".json" or path.name.startswith("."):
            continue
        if not all(is_file(part, links=False) for part in parts):
            continue
        try:
            stamp = tuple(n for part in parts for n in _stamp(part))
        except OSError:
            continue  # gone since
        found.append(StudyFile(path, path.stem, stamp))
    return found


def _stamp(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=16)
def read_study(file: StudyFile) -> Study:
    """A study, read and drawn; whatever is wrong with it is said and not raised."""
    if sum(file.stamp[2::3]) > _LARGEST:
        return Study("", problem=f"It is larger than {_LARGEST:,} bytes: see interp.load.")
    try:
        from nethook.interp import load  # torch is imported where there is a study to read

        result = load(file.path)
        has_data = any(getattr(result, name, None) is not None for name in ("inputs", "images"))
        table = result.table()
    except Exception as error:  # a file of a stranger may be wrong in unheard-of ways
        return Study("", problem=f"It cannot be read: {shorten(error, 400)}")
    try:
        figure = result.spec()
    except Exception as error:
        return Study(table.title, table, problem=shorten(error, 400), has_data=has_data)
    figure["layout"].pop("width", None)  # it is as wide as the page
    return Study(table.title, table, figure, has_data=has_data)


def names_of(files: Sequence[StudyFile]) -> str:
    """Tells which studies there are."""
    return repr([file.name for file in files])
