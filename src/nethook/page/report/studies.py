"""Studies as one HTML file, or as a chapter of a run's report."""

from __future__ import annotations

from pathlib import Path

from nethook.errors import OptionError
from nethook.page.report.page import Chapter, Made, made, page
from nethook.page.report.writing import write_whole
from nethook.page.sections.study import all_studies
from nethook.page.studies import ENDING, StudyFile, folder_beside, studies_in


def is_of_studies(path: Path) -> bool:
    """Whether a path is that of a saved study, or of a folder of them, and not of a run."""
    return path.suffix in (".json", ENDING) or path.is_dir()


def write_studies(place: Path, to: Path, size: int) -> Path:
    """Write the page of a study, or of all in a folder: one HTML file of at most `size` bytes."""
    from plotly.offline import get_plotlyjs

    files = studies_in(place)
    if not files:
        raise OptionError(
            "a report of studies needs files that `save` of a result has written: a name.json with "
            f"its name.safetensors, or a folder of them; got {str(place)!r:.200}."
        )
    script = get_plotlyjs()
    room = size - len(script.encode("utf-8")) - len(page("", [], "").encode("utf-8"))
    chapter = _chapter(files, room, pictures=True, heading="h1" if len(files) == 1 else "h2")
    return write_whole(to, page(place.stem, [chapter], script))


def studies_beside(run: Path, room: int, *, pictures: bool) -> Chapter | None:
    """The studies of a run in `room` bytes; None where there are none."""
    files = studies_in(folder_beside(run))
    return _chapter(files, room, pictures=pictures, heading="h3") if files else None


def _chapter(files: list[StudyFile], room: int, *, pictures: bool, heading: str) -> Chapter:
    kept: list[Made] = []
    for section in all_studies(files, pictures=pictures):
        each = made(section, heading=heading)
        if each.size <= room:
            room -= each.size
            kept.append(each)
    left = len(files) - len(kept)
    note = (
        f"{left} of {len(files)} studies are left out: a report has at most 8 MB." if left else ""
    )
    title = "" if heading == "h1" else "Studies"
    return Chapter("studies", title, kept, title, note)
