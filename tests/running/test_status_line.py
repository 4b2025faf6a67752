"""The status line: one line that is written over in a terminal, now and then a line elsewhere."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nethook.running.status_line import StatusLine, status_line
from tests.running.made import made

LINE = "nethook: step 3  loss 0.25  gradient norm 0.5  watching cost 2.1 %"


class Stream(io.StringIO):
    """A text stream that says whether it is a terminal, and when something was written."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def lines_of(session: Any, stream: Stream) -> str:
    live = StatusLine(session, stream, every=0.01)
    for _ in range(2000):
        if stream.getvalue() or session.watcher is None:
            break
        live._stop.wait(0.01)
    live.stop()
    return stream.getvalue()


@pytest.mark.parametrize(
    ("terminal", "shown"), [(True, f"\r\x1b[K{LINE}\r\x1b[K"), (False, f"{LINE}\n")]
)
def test_the_line(tmp_path: Path, terminal: bool, shown: str) -> None:
    made(tmp_path / "run.db").close()
    session = SimpleNamespace(watcher=SimpleNamespace(paths=[tmp_path / "run.db"]))
    assert lines_of(session, Stream(terminal)) == shown


def test_before_there_is_a_run_nothing_is_said(tmp_path: Path) -> None:
    assert status_line(tmp_path / "none.db") == ""
    assert lines_of(SimpleNamespace(watcher=None), Stream(terminal=False)) == ""


def test_a_stream_that_is_closed_ends_it(tmp_path: Path) -> None:
    made(tmp_path / "run.db").close()
    session: Any = SimpleNamespace(watcher=SimpleNamespace(paths=[tmp_path / "run.db"]))
    stream = Stream(terminal=False)
    stream.close()
    live = StatusLine(session, stream, every=0.01)
    live._thread.join(20)
    assert not live._thread.is_alive()
