"""What waits for the writer thread."""

from __future__ import annotations

import pytest

from nethook.runs.writing import waiting
from nethook.runs.writing.waiting import LIGHT, WaitingNotes, WaitingWindows


class _Window:
    """As much of a sheet as is asked for."""

    def __init__(self, *, carries: bool) -> None:
        self.carries = carries
        self.closed = True


@pytest.mark.parametrize(
    ("heavy", "light", "used"),
    [
        (0, 0, 0),
        (1, 0, 1),
        (3, 0, 3),
        (0, 1, 1),  # rounded up
        (0, LIGHT // 4, 1),
        (0, LIGHT // 4 + 1, 2),
        (0, LIGHT, 4),
        (2, LIGHT // 2, 3),  # 34 of 64 take more than half of the room for 4
    ],
)
def test_windows_without_histograms_take_a_part_of_the_room(heavy, light, used):
    windows = WaitingWindows(4)
    for at in range(heavy + light):
        windows.put(_Window(carries=at < heavy))
    assert windows.used() == used


def test_windows_come_out_as_they_were_put_in_and_leave_their_room():
    windows, put = WaitingWindows(2), [_Window(carries=at != 1) for at in range(3)]
    for window in put:
        windows.put(window)
    assert bool(windows)
    assert not any(window.closed for window in put)
    assert [windows.take() for _ in range(4)] == [*put, None]
    assert (windows.used(), bool(windows)) == (0, False)


def test_the_oldest_notes_go_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(waiting, "MAX_NOTES", 3)
    notes = WaitingNotes()
    for at in range(5):
        notes.put(("event", at))
    assert (notes.take(), notes.take_dropped()) == ([("event", at) for at in (2, 3, 4)], 2)
    assert (notes.take(), notes.take_dropped()) == ([], 0)


def test_notes_that_were_not_written_come_first_again_while_there_is_room(monkeypatch):
    monkeypatch.setattr(waiting, "MAX_NOTES", 4)
    notes = WaitingNotes()
    notes.put(("event", 9))
    notes.put_back([("event", at) for at in range(5)])
    assert notes.take() == [("event", at) for at in (2, 3, 4, 9)]
    assert notes.take_dropped() == 2
