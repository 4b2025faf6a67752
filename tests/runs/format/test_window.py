"""One window in memory: what goes in comes out, also after clearing, copying and widening."""

from __future__ import annotations

import numpy as np

from nethook.runs.format.window import Layout, Window, layout_of
from nethook.stats.fields import BINS, WIDTH, empty_rows


def filled(layout, phase="train"):
    window = Window(layout, phase)
    random = np.random.default_rng(0)
    window.rows[...] = random.normal(size=window.rows.shape)
    window.seen[...] = random.integers(1, 9, window.seen.shape)
    window.histograms[...] = random.integers(0, 9, window.histograms.shape)
    window.bits[...] = 1
    window.add_step(7)
    window.add_step(8)
    window.why = "event"
    window.filled = True
    return window


def state(window, series=None):
    """All that a window says, of its first series."""
    rest = (window.first_step, window.last_step, window.steps, window.why, window.phase)
    arrays = (window.rows[:series], window.seen[:series], window.histograms[:series])
    return [*(array.tolist() for array in arrays), *rest, window.carries, window.filled]


def test_unit_bits_of_a_series_are_those_between_its_offsets():
    layout = layout_of([2, 0, 3])
    assert layout == Layout((2, 0, 3))
    assert layout.offsets == [0, 2, 2, 5]
    assert layout.offset_table.tolist() == layout.offsets
    window = Window(layout)
    window.bits_of(2)[:] = (1, 0, 1)
    assert window.bits_of(1).size == 0
    assert window.bits.tolist() == [0, 0, 1, 0, 1]


def test_a_new_window_is_empty():
    window = Window(layout_of([1, 1]), "eval")
    np.testing.assert_array_equal(window.rows, empty_rows(2))
    assert window.rows.shape == (2, WIDTH)
    assert window.histograms.shape == (2, BINS)
    assert (window.first_step, window.last_step, window.steps) == (-1, -1, 0)
    assert window.carries
    assert not window.filled


def test_steps_are_counted_from_the_first():
    window = filled(layout_of([1]))
    assert (window.first_step, window.last_step, window.steps) == (7, 8, 2)


def test_clearing_makes_it_as_new_where_it_lies():
    window = filled(layout_of([3, 2]))
    addresses = window.addresses
    window.clear()
    assert state(window) == state(Window(layout_of([3, 2])))
    assert not window.bits.any()
    arrays = (window.rows, window.histograms, window.seen, window.bits)
    assert addresses == tuple(array.ctypes.data for array in arrays)


def test_a_copy_is_equal_and_apart():
    window = filled(layout_of([3, 2]), "aux")
    window.carries = False
    copy = Window(window.layout)
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
