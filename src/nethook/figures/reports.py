"""The report of a run, as the public module has it. The page that is written is made by `page`."""

from __future__ import annotations

from pathlib import Path

from nethook.runs.reading.run import Run


def report(run: Run | str | Path, to: str | Path = "report.html") -> Path:
    """Write a report of a run: one HTML file that opens without network.

        nethook.figures.report("runs/mnist.db", "report.html")

    It has the verdict first, each finding beside the figure that shows it, then the overview, then
    every layer. The file has at most 8 MB, however long the run and however deep the model:
    heatmaps have at most 600 columns of 8-bit codes, in which the least and the greatest of every
    column are kept. Batches that a run saved never enter a report.

    Arguments:
        run: a run, or its path.
        to: where to; an existing report is replaced.

    Returns:
        The path of the report.
    """
    from nethook.page.report.report import write_report

    return write_report(run, to)
