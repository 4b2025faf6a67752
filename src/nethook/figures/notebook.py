"""The overview of a run in a notebook's cell, redrawn while the run is written.

While it is, the cell shows a picture. JupyterLab draws a figure of Plotly once, and leaves it as it
is whatever comes later; only what is of another kind replaces it. So the figure that can be zoomed
and pointed at comes last.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from nethook.errors import MissingLibraryError, RunFileError

EVERY: Final = 2.0
"""Seconds between two looks."""
_PLOTLY: Final = "application/vnd.plotly.v1+json"


class Live:
    """An overview that follows a run. Made by `watch.live()`."""

    def __init__(
        self,
        path: Path,
        is_over: Callable[[], bool],
        *,
        every: float | None = None,
        theme: str = "light",
    ) -> None:
        self._path = path
        self._is_over = is_over
        self._theme = theme
        self._every = EVERY if every is None else every
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._handle = _display(self._shown())
        self._thread = threading.Thread(target=self._follow, name="nethook-live", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No more updates; what is shown stays."""
        self._stop.set()
        self.finish()

    def finish(self) -> None:
        """Looks once more, now, and waits until that is shown: the run is over."""
        self._hurry.set()
        self._thread.join(10.0)

    def _follow(self) -> None:
        last: object = None
        over = False
        while not over:
            self._hurry.wait(self._every)
            if self._stop.is_set():
                return
            over = self._is_over()  # before reading: what is read then is all there is
            now = _stamp(self._path)
            if now != last or over:
                last = now
                self._handle.update(self._shown(last=over))

    def _shown(self, *, last: bool = False) -> Any:
        from nethook.figures.runs import overview

        try:
            figure = overview(self._path, theme=self._theme)
        except RunFileError as error:  # not there yet, or just being made
            return _Text(f"waiting for the first step ({error})")
        return _Drawn(figure, last=last) if figure.data else _Text("waiting for the first step")

    def __repr__(self) -> str:
        return f"<Live {str(self._path)!r}: {'stopped' if self._stop.is_set() else 'on'}>"


class _Drawn:
    """A figure in the place that it has: a picture of it, and where it is the last, all of it."""

    def __init__(self, figure: Any, *, last: bool) -> None:
        self._figure = figure
        self._last = last

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        bundle = self._figure._repr_mimebundle_(include, exclude)
        return bundle if self._last else {k: v for k, v in bundle.items() if k != _PLOTLY}

    def _repr_html_(self) -> Any:
        return self._figure._repr_html_()

    def __repr__(self) -> str:
        return repr(self._figure)


class _Text:
    """What stands in the cell before there is a figure."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _stamp(path: Path) -> object:
    stats = []
    for file in (path, Path(f"{path}-wal")):
        try:
            stat = file.stat()
            stats.append((stat.st_mtime_ns, stat.st_size))
        except OSError:
            stats.append((0, 0))
    return stats


def _display(shown: Any) -> Any:
    """Show something in the cell that runs now; what is returned can show something else there."""
    try:
        from IPython.core.getipython import get_ipython
        from IPython.display import display
    except ImportError:
        raise MissingLibraryError(_ELSEWHERE) from None
    if get_ipython() is None:
        raise MissingLibraryError(_ELSEWHERE)
    return display(shown, display_id=True)


_ELSEWHERE: Final = (
    "watch.live() shows a figure in a cell of a notebook, and this is none. Elsewhere type "
    "`nethook ui` beside it, or run the script with `nethook run --ui`."
)
