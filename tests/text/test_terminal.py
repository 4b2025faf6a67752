"""What a stream can show, against real pseudo-terminals of a known size."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from nethook.text.paragraphs import WIDTH, Style
from nethook.text.terminal import Screen, screen_of, style_of


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A terminal of 60 columns and 30 rows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 60, 0, 0))
    with open(theirs, "w") as stream:  # noqa: PTH123 - it has no path
        yield stream
    os.close(ours)


def resize(stream: TextIO, columns: int, rows: int) -> None:
    fcntl.ioctl(stream.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def test_a_log_has_no_size_no_colours_and_the_usual_width() -> None:
    for stream in (None, io.StringIO()):
        assert screen_of(stream) is None
        assert style_of(stream) == Style(False, WIDTH)
    closed = io.StringIO()
    closed.close()
    assert screen_of(closed) is None


def test_a_terminal_has_its_size_and_colours(terminal: TextIO) -> None:
    assert screen_of(terminal) == Screen(60, 30)
    assert style_of(terminal) == Style(True, 58)


@pytest.mark.parametrize(("columns", "width"), [(20, 40), (80, 78), (100, 98), (240, 98)])
def test_lines_are_readable_in_every_width(terminal: TextIO, columns: int, width: int) -> None:
    resize(terminal, columns, 24)
    assert style_of(terminal).width == width


def test_the_environment_knows_better(terminal: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setenv("LINES", "many")
    assert screen_of(terminal) == Screen(90, 30)
    resize(terminal, 0, 0)  # a terminal that does not know
    assert screen_of(terminal) == Screen(90, 24)


@pytest.mark.parametrize(
    ("name", "value", "in_terminal", "in_log"),
    [
        ("NO_COLOR", "1", False, False),
        ("NO_COLOR", "", True, False),  # as no-color.org has it
        ("TERM", "dumb", False, False),
        ("FORCE_COLOR", "1", True, True),
    ],
)
def test_colours(
    terminal: TextIO,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    in_terminal: bool,
    in_log: bool,
) -> None:
    monkeypatch.setenv(name, value)
    assert style_of(terminal).colour is in_terminal
    assert style_of(io.StringIO()).colour is in_log
