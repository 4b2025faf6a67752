"""Studies of `nethook.interp` that were saved: the figure of each, and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from nethook.page.section import Drawing, Section
from nethook.page.studies import MOST, Study, StudyFile, read_study

_ROWS: Final = 24  # of a table
_HEIGHT: Final = 450  # where a figure does not say it
_WITHHELD: Final = (
    "Its figure shows the inputs that were studied. It is drawn with --pictures, or pictures=True."
)


def studies(files: Sequence[StudyFile]) -> Section:
    """The section above all studies of a run: how many there are, or how one is kept."""
    left_out = max(0, len(files) - MOST)
    data = {"count": len(files), "left_out": left_out}
    return Section("studies", repr(data), lambda: data)


def all_studies(files: Sequence[StudyFile], *, pictures: bool = True) -> list[Section]:
    """A section for each of them, up to `MOST`."""
    return [study(file, place, pictures=pictures) for place, file in enumerate(files[:MOST])]


def study(file: StudyFile, place: int, *, pictures: bool = True) -> Section:
    """The section of one study.

    Arguments:
        file: which.
        place: its number on the page.
        pictures: whether a figure is drawn in which inputs can be recognized.
    """
    tag = repr((str(file.path), file.stamp, pictures))
    name = f"study-{place}"

    def shown() -> Study:
        found = read_study(file)
        if found.has_data and found.figure is not None and not pictures:
            return replace(found, figure=None, problem=_WITHHELD)
        return found

    def data() -> Mapping[str, Any]:
        found = shown()
        table = found.table
        rows = [] if table is None else table.rows
        return {
            "name": file.name,
            "title": found.title.split("\n") if found.title else [],
            "problem": found.problem,
            "figure": name if found.figure is not None else "",
            "height": _HEIGHT if found.figure is None else found.figure["layout"].get("height"),
            "columns": [] if table is None else table.columns,
            "rows": rows[:_ROWS],
            "more": max(0, len(rows) - _ROWS),
            "right": []
            if table is None
            else [at for at, column in enumerate(table.columns) if column in table.right],
        }

    return Section(name, tag, data, {name: Drawing(tag, lambda: shown().figure)})
