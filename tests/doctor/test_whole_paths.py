"""Lines of findings that an editor finds."""

from __future__ import annotations

from typing import Any

from nethook.doctor.finding import Finding
from nethook.doctor.history import History
from nethook.doctor.whole_paths import with_whole_paths
from tests.doctor.synthetic import Made


def finding(*lines: str, below: tuple[Finding, ...] = ()) -> Finding:
    return Finding("code", "error", "what", "how", lines=lines, consequences=below)


def lines(made: Made, found: Finding) -> list[Any]:
    (told,) = with_whole_paths([found], History(made))
    return [told.lines, *(below.lines for below in told.consequences)]


def test_the_file_of_a_loss_is_known_by_its_path() -> None:
    made = Made(4).record(source="/home/me/train.py:42 in step")
    found = finding("train.py:7", "net.py:3", below=(finding("train.py:9"),))
    assert lines(made, found) == [("/home/me/train.py:7", "net.py:3"), ("/home/me/train.py:9",)]
    windows = Made(4).record(source="C:\\me\\train.py:42")
    assert lines(windows, finding("train.py:7")) == [("C:\\me\\train.py:7",)]


def test_a_line_is_not_shown_twice() -> None:
    made = Made(4).record(source="/home/me/train.py:42")
    assert lines(made, finding("/home/me/train.py:7", "train.py:7")) == [("/home/me/train.py:7",)]


def test_a_name_that_two_files_have_is_left_alone() -> None:
    made = Made(4).record(source="/one/train.py:1").record(2, source="/two/train.py:1")
    assert lines(made, finding("train.py:7")) == [("train.py:7",)]
    assert lines(Made(4).record(source="train.py:1"), finding("train.py:7")) == [("train.py:7",)]
    assert lines(Made(4), finding("train.py:7")) == [("train.py:7",)]
    library = Made(4).record(source="/usr/lib/python3/site-packages/lib/train.py:1")
    assert lines(library, finding("train.py:7")) == [("train.py:7",)]
