"""Series of several ranks put together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.runs.reading.merge_ranks import OfRank, best_counts, is_root, part_in, together
from nethook.stats.fields import INDEX, WIDTH, empty_rows
from nethook.stats.tables import number_rows

PLACES = np.arange(3)


def rank(values, seen=(1, 1, 1), part=None) -> OfRank:
    """A rank with a number in each of three windows; None where it has none."""
    rows = empty_rows(3)
    for at, value in enumerate(values):
        if value is not None:
            rows[at] = number_rows(np.array([float(value)]))[0]
    numbers = np.column_stack([rows, np.array(seen, float)])
    assert numbers.shape[1] == WIDTH + 1
    return OfRank(PLACES, numbers, part)


def column(whole, name: str) -> list[float]:
    return whole.rows[:, INDEX[name]].tolist()


def test_samples_of_all_ranks_count() -> None:
    whole = together(3, [rank([1, 2, 3]), rank([3, 4, 5])])
    assert whole.parts is None
    assert column(whole, "count") == [2, 2, 2]
    assert column(whole, "mean") == [2, 3, 4]
    assert whole.seen.tolist() == [2, 2, 2]


def test_what_is_the_same_everywhere_counts_once_from_who_has_seen_most() -> None:
    first = rank([1, None, 3], seen=(1, 0, 1), part=(0, 1))
    second = rank([9, 2, 9], seen=(1, 1, 1), part=(0, 1))
    whole = together(3, [first, second])
    assert column(whole, "mean") == [1, 2, 3]
    assert column(whole, "count") == [1, 1, 1]
    assert (whole.seen.tolist(), whole.parts) == ([1, 1, 1], 1)


def test_each_part_counts_once() -> None:
    ranks = [rank([each] * 3, part=part) for each, part in ((1, (0, 2)), (5, (1, 2)), (1, (0, 2)))]
    whole = together(3, ranks)
    assert column(whole, "mean") == [3, 3, 3]
    assert (column(whole, "count"), whole.parts) == ([2, 2, 2], 2)


@given(st.lists(st.lists(st.floats(0, 100), min_size=3, max_size=3), min_size=2, max_size=4))
def test_norms_of_parts_become_the_norm_of_all(squares) -> None:
    # A rank writes the root of its squares times the number of parts.
    ranks = [rank(np.sqrt(np.array(each) * len(squares))) for each in squares]
    whole = together(3, ranks, root=True)
    expected = np.sqrt(np.sum(squares, axis=0))
    np.testing.assert_allclose(whole.rows[:, INDEX["mean"]], expected, rtol=1e-12, atol=1e-150)
    assert column(whole, "count") == [1, 1, 1]


def test_a_norm_that_one_rank_does_not_have_is_not_known() -> None:
    whole = together(3, [rank([1, 1, 1]), rank([1, None, 1], seen=(1, 0, 1))], root=True)
    assert column(whole, "count") == [1, 0, 1]
    assert whole.seen.tolist() == [1, 0, 1]


def test_histograms_of_the_same_part_are_counted_once() -> None:
    many, few = np.array([[4, 4], [1, 0]]), np.array([[3, 3], [2, 0]])
    assert best_counts([(many, None), (few, None)]).tolist() == [[7, 7], [3, 0]]
    assert best_counts([(many, (0, 1)), (few, (0, 1))]).tolist() == [[4, 4], [2, 0]]
    assert best_counts([(many, (0, 2)), (few, (1, 2))]).tolist() == [[7, 7], [3, 0]]


@pytest.mark.parametrize(
    "part", [None, "0", [0], [0, 0], [2, 2], [-1, 2], [0.0, 1], [0, 1, 2], [0, 1 << 30]]
)
def test_a_part_that_means_nothing_is_none(part) -> None:
    assert part_in({"part": part}) is None
    assert part_in({"part": [1, 2]}) == (1, 2)


def test_only_norms_of_the_loop_are_roots() -> None:
    assert is_root("@loop", "grad_norm")
    assert not is_root("@loop", "forwards")
    assert not is_root("grad_norm", "outputs")
