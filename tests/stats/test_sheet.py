"""A sheet: what goes in comes out, by row or by series, also after it was cleared or copied."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.runs.writing.queue import WindowQueue
from nethook.stats.fields import BINS, INDEX, WIDTH, empty_rows
from nethook.stats.rows import Rows
from nethook.stats.sheet import Layout, Order, Sheet, layout_of


def filled(layout, phase="train"):
    window = Sheet(layout, phase)
    random = np.random.default_rng(0)
    window.rows[...] = random.normal(size=window.rows.shape)
    window.seen[...] = random.integers(1, 9, window.seen.shape)
    window.histograms[...] = random.integers(0, 9, window.histograms.shape)
    window.bits[...] = 1
    window.add_step(7)
    window.add_step(8)
    window.why = "event"
    return window


def state(window, series=None):
    """All that a window says, of its first series."""
    rest = (window.first_step, window.last_step, window.steps, window.why, window.phase)
    arrays = (window.rows[:series], window.seen[:series], window.histograms[:series])
    return [*(array.tolist() for array in arrays), *rest, window.carries]


def test_unit_bits_of_a_series_are_those_between_its_offsets():
    layout = layout_of([2, 0, 3])
    assert layout == Layout((2, 0, 3))
    assert layout.offsets == [0, 2, 2, 5]
    assert layout.offset_table.tolist() == layout.offsets
    window = Sheet(layout)
    window.bits_of(2)[:] = (1, 0, 1)
    assert window.bits_of(1).size == 0
    assert window.bits.tolist() == [0, 0, 1, 0, 1]


def test_a_new_window_is_empty():
    window = Sheet(layout_of([1, 1]), "eval")
    np.testing.assert_array_equal(window.rows, empty_rows(2))
    assert window.rows.shape == (2, WIDTH)
    assert window.histograms.shape == (2, BINS)
    assert (window.first_step, window.last_step, window.steps) == (-1, -1, 0)
    assert window.carries
    assert not window.closed


def test_steps_are_counted_from_the_first():
    window = filled(layout_of([1]))
    assert (window.first_step, window.last_step, window.steps) == (7, 8, 2)


def test_clearing_makes_it_as_new_where_it_lies():
    window = filled(layout_of([3, 2]))
    window.closed = True
    addresses = (window.rows_address, window.histograms_address, window.seen_address)
    window.clear()
    assert state(window) == state(Sheet(layout_of([3, 2])))
    assert not window.bits.any()
    assert not window.closed
    arrays = (window.rows, window.histograms, window.seen)
    assert addresses == tuple(array.ctypes.data for array in arrays)


def test_a_copy_is_equal_and_apart():
    window = filled(layout_of([3, 2]), "aux")
    window.carries = False
    copy = Sheet(window.layout)
    window.copy_to(copy)
    assert state(copy) == state(window)
    window.rows[...] = 0
    window.bits[...] = 0
    assert copy.rows.any()
    assert copy.bits.all()


def test_widened_it_has_room_for_later_series():
    window = filled(layout_of([3, 2]), "eval")
    wide = window.widened(layout_of([3, 2, 4]))
    assert state(wide, 2) == state(window)
    np.testing.assert_array_equal(wide.rows[2:], empty_rows(1))
    assert not wide.seen[2:].any()
    assert wide.bits.tolist() == [1] * 5 + [0] * 4


def ordered(series, units=()):
    """A sheet of as many rows, each of which says which series it is; odd ones were not seen."""
    sheet = Sheet(layout_of(units or [0] * (max(series) + 1)), rows=len(series) + 2)
    sheet.order = Order(np.array(series))
    for row, at in enumerate(series):
        if at >= 0:
            sheet.rows[row, [INDEX["tensors"], INDEX["count"]]] = 1, at
            sheet.histograms[row, at] = 1
            sheet.seen[row] = at % 2
    return sheet


@settings(max_examples=50)
@given(st.permutations(range(7)), st.sets(st.integers(0, 9), max_size=3))
def test_rows_come_in_the_order_of_their_series(series, gaps):
    series = list(series)
    for gap in sorted(gaps):
        series.insert(min(gap, len(series)), -1)
    sheet = ordered(series)
    rows, seen = sheet.in_order()
    assert rows[:, INDEX["count"]].tolist() == list(range(7))
    assert seen.tolist() == [1] * 7  # what was measured at all was seen
    counts = np.zeros((7, BINS), np.int64)
    for mine, theirs in sheet.runs:
        counts[theirs] += sheet.histograms[mine]
    np.testing.assert_array_equal(counts, np.eye(7, BINS, dtype=np.int64))
    places = [
        place
        for mine, theirs in sheet.runs
        for place in zip(range(*mine.indices(99)), range(*theirs.indices(99)), strict=True)
    ]
    assert places == [(row, at) for row, at in enumerate(series) if at >= 0]


def test_series_beyond_the_rows_are_empty_and_steps_alone_do_not_count_as_seen():
    sheet = ordered([1, 0], units=[0, 0, 0])
    sheet.rows[0] = empty_rows(1)  # a number on a device that was not there
    rows, seen = sheet.in_order()
    np.testing.assert_array_equal(rows[1:], empty_rows(2))
    assert seen.tolist() == [1, 0, 0]


def test_without_an_order_a_row_is_a_series():
    window = filled(layout_of([1, 1]))
    rows, seen = window.in_order()
    assert rows is window.rows
    assert seen is window.seen
    assert window.runs == [(slice(0, 2), slice(0, 2))]
    assert Order(np.array([-1, -1])).runs == []


def test_only_the_rows_that_were_used_are_cleared_and_that_is_all_of_it():
    sheet = ordered([2, 0, 1])
    sheet.add_step(1)
    sheet.clear()
    assert state(sheet) == state(Sheet(rows=5))
    assert sheet.order is None


def test_histograms_that_are_left_are_in_the_next_sheet():
    first, second = filled(layout_of([1])), Sheet(layout_of([1]))
    counts, address = first.histograms, first.histograms_address
    first.leave_histograms(second)
    assert second.histograms is counts
    assert second.histograms_address == address == counts.ctypes.data
    assert not first.histograms.any()
    assert first.histograms_address == first.histograms.ctypes.data
    assert not first.carries
    assert second.carries


def test_steps_that_come_at_once_are_counted_as_one_by_one():
    at_once, one_by_one = Sheet(), Sheet()
    at_once.add_steps(3, 2)
    at_once.add_steps(5, 4)
    for step in range(3, 9):
        one_by_one.add_step(step)
    assert state(at_once) == state(one_by_one)


def test_unit_bits_stay_when_there_are_more():
    sheet = Sheet(layout_of([2]), rows=4)
    sheet.bits[:] = (0, 1)
    sheet.fit(layout_of([2, 3]))
    assert sheet.bits.tolist() == [0, 1, 0, 0, 0]
    assert sheet.bits_of(1).size == 3


def test_a_sheet_waits_for_the_one_that_closed_it_until_it_is_handed_over():
    rows = Rows(2)
    closed = rows.turn(Sheet(rows=2, phase="eval"))
    assert closed.waits("train")
    assert not closed.waits("eval")
    assert not rows.sheet.waits("eval")  # it is open
    queue = WindowQueue()
    queue.put(closed)
    assert not closed.waits("train")
    queue.give_back(queue.take().window)
    assert queue.empty(Layout(), "train", 2) is closed
    assert not closed.waits("train")
