"""A progress bar with rate and time left, on a terminal or in a notebook; else nothing."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


class Bar:
    """Shows how far long work is. `shown` None shows it where somebody can see it."""

    def __init__(
        self,
        total: int | None,
        done: int,
        *,
        shown: bool | None = None,
        label: str = "extracting",
        unit: str = "samples",
        console: Console | None = None,
    ) -> None:
        self._rows = 0
        self._unit = unit
        self._progress: Progress | None = None
        # Making a console takes a millisecond, for which a short sweep has no time.
        nobody = console is None and not sys.stderr.isatty() and "IPython" not in sys.modules
        if shown is False or (shown is None and nobody and not os.environ.get("FORCE_COLOR")):
            return
        from rich.console import Console

        console = console or Console(stderr=True)
        if shown or console.is_terminal or console.is_jupyter:
            self._progress = _columns(console)
            self._task = self._progress.add_task(label, total=total, completed=done, rate="")

    def advance(self, rows: int) -> None:
        """One more batch, of so many rows."""
        if self._progress is None:
            return
        self._rows += rows
        seconds = self._progress.tasks[0].elapsed or 0
        rate = f"{self._rows / seconds:,.0f} {self._unit}/s" if seconds > 0 else ""
        self._progress.update(self._task, advance=1, rate=rate)

    def expect(self, more: int) -> None:
        """There are so many batches more, and not what was said at first."""
        if self._progress is not None:
            done = int(self._progress.tasks[0].completed)
            self._progress.update(self._task, total=done + more)

    def __enter__(self) -> Bar:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()


def _columns(console: Any) -> Progress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("batches  {task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )
