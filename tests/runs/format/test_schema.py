"""Packed keys: what belongs together lies together."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from nethook.runs.format.schema import (
    BLOCK,
    HISTOGRAM_BLOCK,
    LEVELS,
    MAX_SERIES,
    NUMBERS,
    PHASES,
    SINCE,
    TABLES,
    VERSION,
    key,
    number_of,
    scalar_key,
)


@given(
    st.sampled_from(PHASES),
    st.integers(0, NUMBERS - 1),
    st.integers(0, MAX_SERIES // HISTOGRAM_BLOCK - 1),
    st.integers(0, len(LEVELS)),
)
def test_a_key_is_one_number_below_2_to_the_63(phase, number, block, level):
    packed = key(phase, number, block=block, level=level)
    assert 0 <= packed < 2**63
    assert number_of(packed) == number
    assert packed >> 56 == PHASES.index(phase)
    assert packed >> 52 & 15 == level
    assert packed >> 32 & (2**20 - 1) == block


def test_keys_sort_by_phase_then_level_then_block_then_number():
    parts = list(itertools.product(PHASES, range(4), (0, 1, 300), (0, 7, NUMBERS - 1)))
    keys = [key(phase, number, block=block, level=level) for phase, level, block, number in parts]
    assert keys == sorted(set(keys))


def test_chunks_of_a_name_lie_before_those_of_the_next():
    assert scalar_key(3, NUMBERS - 1) + 1 == scalar_key(4, 0)
    assert number_of(scalar_key(3, 17)) == 17


def test_every_level_is_a_group_of_the_one_below():
    assert all(coarse == LEVELS[0] * fine for fine, coarse in itertools.pairwise(LEVELS))
    assert BLOCK % HISTOGRAM_BLOCK == 0


def test_sqlite_makes_every_table():
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in TABLES.values():
            connection.execute(statement)
        made = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    assert {name for (name,) in made} == set(TABLES)
    assert set(SINCE) <= set(TABLES)
    assert max(SINCE.values()) <= VERSION
