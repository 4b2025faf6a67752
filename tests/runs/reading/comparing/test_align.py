"""Windows of several ranks on one axis."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nethook.runs.reading.comparing.align import add_onto, common_axis, merge_onto
from nethook.stats.fields import INDEX
from tests.runs.made import row, values


def cut(steps: int, ends: set[int]) -> tuple[np.ndarray, np.ndarray]:
    """Windows of steps 0 to steps − 1 that end at some of them, and at the last."""
    lasts = np.array(sorted({*(end for end in ends if end < steps), steps - 1}))
    return np.concatenate(([0], lasts[:-1] + 1)), lasts


RANK = st.tuples(st.integers(1, 40), st.sets(st.integers(0, 40)))


@given(st.lists(RANK, min_size=1, max_size=4))
def test_every_window_is_inside_one_common_window(ranks: list[tuple[int, set[int]]]) -> None:
    windows = [cut(*rank) for rank in ranks]
    axis = common_axis([first for first, _ in windows], [last for _, last in windows])
    assert axis.first_step[0] == 0
    assert axis.last_step[-1] == max(steps for steps, _ in ranks) - 1
    assert np.array_equal(axis.first_step[1:], axis.last_step[:-1] + 1)
    for (first, last), place in zip(windows, axis.places, strict=True):
        assert (axis.first_step[place] <= first).all()
        assert (axis.last_step[place] >= last).all()


def test_equal_windows_stay_as_they_are() -> None:
    first, last = cut(10, set(range(10)))
    axis = common_axis([first, first], [last, last])
    assert axis.last_step.tolist() == list(range(10))


@given(RANK)
def test_one_rank_is_as_two_that_are_equal(rank: tuple[int, set[int]]) -> None:
    first, last = cut(*rank)
    one, two = common_axis([first], [last]), common_axis([first, first], [last, last])
    assert np.array_equal(one.first_step, two.first_step)
    assert np.array_equal(one.last_step, two.last_step)
    assert np.array_equal(one.places[0], two.places[0])


def test_rows_that_stay_alone_are_not_changed_by_a_bit() -> None:
    rows = np.stack([row(values(0, step)) for step in range(5)])
    rows[2, INDEX["mean"]] = -0.0
    merged = merge_onto(5, np.arange(5), rows)
    assert np.array_equal(merged, rows)
    assert not np.signbit(merged[2, INDEX["mean"]])
    assert np.array_equal(merged, merge_onto(6, np.arange(5), rows)[:5])  # into one that is empty
    assert not np.shares_memory(merged, rows)


def test_rows_are_merged_and_numbers_added() -> None:
    data = [values(0, step) for step in range(5)]
    place = np.array([0, 0, 0, 1, 2])
    merged = merge_onto(4, place, np.stack([row(each) for each in data]))
    want = row(np.concatenate(data[:3]))
    want[0] = 3  # tensors
    assert np.allclose(merged[0], want, rtol=1e-12)
    assert np.array_equal(merged[1], row(data[3]))
    assert merged[3, 0] == 0
    assert add_onto(4, place, np.arange(5)).tolist() == [3, 3, 4, 0]


def test_nothing_at_all() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert len(common_axis([nothing], [nothing])) == 0
