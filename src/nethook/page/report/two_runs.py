"""Two runs compared, as one HTML file with figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nethook.errors import MissingLibraryError
from nethook.figures.difference import Difference
from nethook.figures.runs import parting_marks, parting_spec
from nethook.figures.two_runs import curves_of, ratio_of_two
from nethook.page.report.html import Report, Tab, page
from nethook.page.report.writing import write_whole
from nethook.text.escape import shorten

_QUANTITIES = ("spread", "output_gradients", "gradients", "updates", "weights", "silent")


def write_page(difference: Difference, to: str | Path) -> Path:
    """The page of a difference: one HTML file that needs no network."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingLibraryError(
            "figures are drawn by plotly, which is not installed: pip install 'nethook[ui]'"
        ) from None
    marks = parting_marks(difference.parting)
    tabs = []
    if difference.parting.rows and np.isfinite(difference.parting.difference).any():
        spec = parting_spec(difference.first, difference.second, difference.parting)
        spec["layout"].pop("title", None)
        explain = (
            "Largest relative difference of mean and spread of all that is recorded of a site."
        )
        tabs.append(Tab("Where they differ", explain, spec))
    for name in _QUANTITIES:
        ratio = ratio_of_two(difference.first, difference.second, name, difference.names, marks)
        if ratio is not None:
            ratio["layout"].pop("title", None)
            grid = difference.first.needed_grid(name)
            explain = (
                f"{grid.quantity.explain} {difference.names[1]} against {difference.names[0]}."
            )
            tabs.append(Tab(grid.quantity.title, explain, ratio))
    made = Report(
        f"{difference.names[0]} and {difference.names[1]}",
        "two runs compared",
        difference.headline(),
        "" if difference.parting.same else "info",
        "",
        [(f"loss, {name}", text) for name, text in difference.losses()],
        [],
        curves_of((difference.first, difference.second), difference.names, marks, titled=False),
        tabs,
        [],
        None,
        [],
        "",
        [],
        [
            (shorten(what, 40), f"{difference.names[0]}: {one}\n{difference.names[1]}: {two}")
            for what, one, two in difference.parting.facts
        ],
    )
    return write_whole(Path(to), page(made, get_plotlyjs()))
