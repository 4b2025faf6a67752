"""`/metrics`: the runs of the page as Prometheus reads them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from nethook.exporting.openmetrics import openmetrics_of_many
from nethook.page.folder import Folder
from nethook.runs.reading.run import open_run

MOST: Final = 16
"""Runs that are in one answer: those that are being written, the newest first."""
_LOOKED_AT: Final = 64  # runs of a folder of which is asked whether they are being written


def metrics_of(folder: Folder, run: str | None = None) -> str | None:
    """The numbers of the runs that are being written, and of the newest in any case.

    Arguments:
        folder: the runs.
        run: the id of one run, which is then the only one.

    Returns:
        The text; None where there is no such run.
    """
    if run is not None:
        entry = folder.entry(run)
        if entry is None:
            return None
        chosen = [folder.open(entry)]
    else:
        opened = [folder.open(entry) for entry in folder.entries()[:_LOOKED_AT]]
        chosen = [each for at, each in enumerate(opened) if at == 0 or each.state == "open"][:MOST]
    with ExitStack() as stack:
        # Opened anew: what is shown has a lock, and a scrape must not wait for a figure.
        runs = {
            each.entry.name: stack.enter_context(open_run(each.entry.path))
            for each in chosen
            if each.reading is not None
        }
        return openmetrics_of_many(runs)
