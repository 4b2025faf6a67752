"""How a run ended, for trackers: the verdict in a line, and a report that they may keep."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from nethook.doctor.verdict import verdict_of
from nethook.errors import MissingLibraryError
from nethook.runs.reading.run import Run


class Ending(NamedTuple):
    """The verdict, and the report if there is one."""

    verdict: str
    report: Path | None


@contextmanager
def ending_of(path: Path, *, report: bool) -> Iterator[Ending]:
    """The ending of a run. The report is in a folder that is removed afterwards.

    Arguments:
        path: the run file.
        report: whether anybody wants a report.
    """
    with tempfile.TemporaryDirectory(prefix="nethook-") as folder:
        try:
            with Run(path, only=0) as run:
                verdict = str(verdict_of(run))
            written = _report(path, Path(folder)) if report else None
        except Exception as error:  # a mistake of ours must not end a training
            verdict, written = f"not judged: {error}", None
        yield Ending(verdict, written)


def _report(path: Path, folder: Path) -> Path | None:
    from nethook.figures.reports import report

    try:
        return report(path, folder / f"{path.stem}.html")
    except MissingLibraryError:
        return None
