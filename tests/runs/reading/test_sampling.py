"""Which ranks are read for the layers of a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.errors import OptionError
from nethook.runs.reading.sampling import SAMPLED, chosen_ranks, sampled


@given(st.sets(st.integers(0, 5000), min_size=1, max_size=200))
def test_the_first_and_the_last_are_in_and_there_are_few(ranks: set[int]) -> None:
    some = sampled(list(ranks))
    assert some == sorted(set(some))
    assert set(some) <= ranks
    assert len(some) == min(len(ranks), SAMPLED)
    assert (some[0], some[-1]) == (min(ranks), max(ranks))


def test_all_or_those_that_were_asked_for() -> None:
    ranks = list(range(100))
    assert chosen_ranks("all", ranks) == ranks
    assert chosen_ranks([7, 3, 7], ranks) == [3, 7]


@pytest.mark.parametrize("wanted", ["some", [100], [], ["0"]])
def test_other_words_are_refused(wanted: object) -> None:
    with pytest.raises(OptionError, match="`ranks` must be"):
        chosen_ranks(wanted, range(100))  # type: ignore[arg-type]
