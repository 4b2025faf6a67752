"""The status line: the last row of a terminal, now and then a line elsewhere."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nethook.running.live.status_line import StatusLine, status_line
from tests.running.made import made
from tests.running.screens import Terminal

LINE = "nethook: step 3  loss 0.25  gradient norm 0.5  watching cost 2.1 %"


def lines_of(session: Any, stream: Any, written: Callable[[], object]) -> None:
    live = StatusLine(session, stream, every=0.01)
    for _ in range(2000):
        if written() or session.watcher is None:
            break
        live._stop.wait(0.01)
    live.stop()


def following(tmp_path: Path) -> Any:
    made(tmp_path / "run.db").close()
    return SimpleNamespace(watcher=SimpleNamespace(paths=[tmp_path / "run.db"]))


def test_in_a_log_it_is_a_line_among_others(tmp_path: Path) -> None:
    stream = io.StringIO()
    lines_of(following(tmp_path), stream, stream.getvalue)
    assert stream.getvalue() == f"{LINE}\n"


def test_in_a_terminal_it_is_the_last_row_and_is_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    seen: list[str] = []

    with Terminal() as terminal:
        terminal.stream.write("what the script printed\n")

        def last_row() -> str:
            seen.append(terminal.rows()[-1])
            return seen[-1]

        lines_of(following(tmp_path), terminal.stream, last_row)
        assert seen[-1] == LINE
        assert terminal.text() == ["what the script printed"]


def test_a_dumb_terminal_gets_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with Terminal() as terminal:
        lines_of(following(tmp_path), terminal.stream, terminal.text)
        assert terminal.text() == [LINE]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (None, LINE),
        (len(LINE), LINE),
        (len(LINE) - 1, "nethook: step 3  loss 0.25  gradient norm 0.5"),
        (30, "nethook: step 3  loss 0.25"),
        (3, "nethook: step 3"),
    ],
)
def test_numbers_are_whole_or_left_out(tmp_path: Path, width: int | None, shown: str) -> None:
    made(tmp_path / "run.db").close()
    assert status_line(tmp_path / "run.db", width) == shown


def test_before_there_is_a_run_nothing_is_said(tmp_path: Path) -> None:
    assert status_line(tmp_path / "none.db") == ""
    stream = io.StringIO()
    lines_of(SimpleNamespace(watcher=None), stream, stream.getvalue)
    assert stream.getvalue() == ""


def test_a_stream_that_is_closed_ends_it(tmp_path: Path) -> None:
    session = following(tmp_path)
    stream = io.StringIO()
    stream.close()
    live = StatusLine(session, stream, every=0.01)
    live._thread.join(20)
    assert not live._thread.is_alive()
