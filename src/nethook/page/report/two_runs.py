"""Two runs compared, as one HTML file with figures."""

from __future__ import annotations

from pathlib import Path

from nethook.figures.difference import Difference
from nethook.page.report.links import ReportLinks
from nethook.page.report.page import Chapter, made, page
from nethook.page.report.writing import write_whole
from nethook.page.section import Subject
from nethook.page.sections.comparison import Pair, whole_comparison


def write_page(difference: Difference, to: str | Path) -> Path:
    """The page of a difference: one HTML file that needs no network."""
    from plotly.offline import get_plotlyjs

    links = ReportLinks({})
    names = difference.names
    first = Subject(difference.first, links, names[0])
    second = Subject(difference.second, links, names[1])
    section = made(whole_comparison(Pair(first, second, names, difference)))
    chapters = [Chapter("comparison", "", [section])]
    return write_whole(Path(to), page(f"{names[0]} and {names[1]}", chapters, get_plotlyjs()))
