"""Reports, as the public module and the command line have them; `page` makes what is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nethook.errors import MissingLibraryError
from nethook.figures.difference import Difference
from nethook.runs.reading.run import Run

if TYPE_CHECKING:
    from nethook.page.cells import Cell

_NEEDED: Final = ("jinja2", "markupsafe", "plotly", "plotly.offline")


def report(
    run: Run | str | Path, to: str | Path = "report.html", *, pictures: bool = False
) -> Path:
    """Write a report of a run: one HTML file that opens without network.

        nethook.figures.report("runs/mnist.db", "report.html")
        nethook.figures.report("patching.json", "patching.html")     # a study that was saved

    It has the verdict first, each finding beside the figure that shows it, then the overview, then
    every layer. The file has at most 8 MB, however long the run and however deep the model:
    heatmaps have at most 600 columns of 8-bit codes, in which the least and the greatest of every
    column are kept. A report is handed on, so it has no batches that a run saved, and
    its snapshots only with `pictures=True`. Results of `nethook.interp` that were saved beside
    the run, in the folder NAME.studies, are a chapter of it.

    Arguments:
        run: a run, or its path; or the path of a saved study, or of a folder of them.
        to: where to; an existing report is replaced.
        pictures: show snapshots (feature maps, attention, outputs of a few samples), and figures
            of studies beside the run that show inputs. Whoever reads the report may recognize the
            data in them.

    Returns:
        The path of the report.
    """
    with _all_installed():
        from nethook.page.report.report import SIZE, write_report
        from nethook.page.report.studies import is_of_studies, write_studies

        if isinstance(run, str | Path) and is_of_studies(Path(run).expanduser()):
            return write_studies(Path(run).expanduser(), Path(to), SIZE)
        return write_report(run, to, pictures=pictures)


def show(
    run: Run | str | Path, *sections: str, at: str | None = None, theme: str = "light"
) -> Cell:
    """Show sections of the page in a cell of a notebook, without a server and without scripts.

        nethook.figures.show("runs/mnist.db")                       # the verdict and the curves
        nethook.figures.show("runs/mnist.db", "findings", "cost")
        nethook.figures.show("runs/mnist.db", at="conv1")           # one layer

    Arguments:
        run: a run, or its path.
        sections: `verdict`, `findings`, `loop` (loss and loop), `layers` (over steps), `depth`,
            `model`, `pictures` (snapshots), `ran` (what ran), `cost`.
        at: a layer: its numbers, and how its values were distributed.
        theme: `light` or `dark`.

    Returns:
        What shows itself as the last line of a cell, also where scripts do not run.
    """
    with _all_installed():
        from nethook.page.cells import Cell

        return Cell(run, sections, at, theme)


def difference_page(difference: Difference, to: str | Path) -> Path:
    """Write the page of a difference: one HTML file that opens without network."""
    with _all_installed():
        from nethook.page.report.two_runs import write_page

        return write_page(difference, to)


@contextmanager
def _all_installed() -> Iterator[None]:
    """Says what to install where something is missing."""
    try:
        yield
    except ImportError as error:
        if error.name not in _NEEDED:
            raise
        library = error.name.partition(".")[0]
        raise MissingLibraryError(
            f"a report is made with {library}, which is not installed: pip install 'nethook[ui]'"
        ) from None
