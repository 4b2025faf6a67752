"""A line that says how far trials are."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nethook.errors import RunFileError
from nethook.running.trying import progress
from nethook.running.trying.progress import ProgressLine, try_at_end


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_is_wiped_off() -> None:
    stream = Terminal()
    line = ProgressLine(stream)
    line.say("trial 1 of 2, the script as it is: step 3 of 200")
    line.end()
    assert stream.getvalue() == (
        "\r\x1b[Knethook: trial 1 of 2, the script as it is: step 3 of 200\r\x1b[K"
    )


def test_a_log_has_a_line_per_trial() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream)
    for what in ("trial 1 of 2", "trial 1 of 2: step 3 of 9", "trial 1 of 2", "trial 2 of 2"):
        line.say(what)
    line.end()
    assert stream.getvalue() == "nethook: trial 1 of 2\nnethook: trial 2 of 2\n"


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (RunFileError("the disk is full."), "No fix was tried: the disk is full."),
        (KeyboardInterrupt(), "Trying fixes was interrupted."),
    ],
)
def test_what_ends_trials_does_not_end_the_verdict(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, note: str
) -> None:
    def fail(path: Path, say: Any) -> None:
        raise error

    monkeypatch.setattr(progress, "written_files", lambda session: [Path("run.db")])
    session: Any = SimpleNamespace(notes=[])
    try_at_end(session, SimpleNamespace(try_fixes=fail), io.StringIO())  # type: ignore[arg-type]
    assert session.notes == [note]


def test_nothing_is_tried_without_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "written_files", lambda session: [])
    session: Any = SimpleNamespace(notes=[])
    try_at_end(session, None, None)  # type: ignore[arg-type]
    assert session.notes == []
