"""Scalars as they are written: in chunks, of which the last is written again and again."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.runs.format.points import ScalarTrack, pack_points, unpack_points
from nethook.runs.format.schema import CHUNK, TABLES


@pytest.fixture
def file():
    with sqlite3.connect(":memory:", isolation_level=None) as connection:
        for statement in TABLES.values():
            connection.execute(statement)
        yield connection


def stored(file):
    found = file.execute("SELECT first_step, first_time, data FROM scalars ORDER BY key")
    return [unpack_points(data, step, time) for step, time, data in found.fetchall()]


def some(first, count):
    return [(first + at, 1000.0 + at / 8, float(at % 7)) for at in range(count)]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**9),
            st.floats(1e9, 3e9),
            st.floats(allow_nan=True, allow_infinity=True),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_points_come_back(points):
    table = np.array(points)
    for worth in (0, 0.97):
        data = pack_points(table, worth)
        found = unpack_points(data, int(table[0, 0]), round(float(table[0, 1]), 3))
        assert np.array_equal(found[:, 0], table[:, 0])
        assert np.allclose(found[:, 1], table[:, 1], rtol=0, atol=2e-3)
        assert np.array_equal(found[:, 2], table[:, 2], equal_nan=True)
    assert np.array_equal(table, np.array(points), equal_nan=True)  # and are not changed by it


@pytest.mark.parametrize("sizes", [[3], [CHUNK], [CHUNK + 1], [1] * 5, [500, 30, 3 * CHUNK, 7]])
def test_points_that_come_together_are_as_those_that_come_one_by_one(file, sizes):
    track, every, first = ScalarTrack(file), [], 0
    for size in sizes:
        points = some(first, size)
        track.add("loss", points)
        track.write()
        every += points
        first += size
    chunks = stored(file)
    assert [len(each) for each in chunks[:-1]] == [CHUNK] * (len(chunks) - 1)
    assert np.array_equal(np.concatenate(chunks), np.array(every))


def test_a_chunk_is_written_as_it_is_until_it_is_full(file):
    track = ScalarTrack(file)
    track.add("loss", some(0, 5))
    assert stored(file) == []
    track.write()
    track.add("loss", some(5, 3))
    assert [len(each) for each in stored(file)] == [5]
    track.write()
    assert [len(each) for each in stored(file)] == [8]


def test_only_as_many_stay_as_are_to_be_kept(file):
    track = ScalarTrack(file)
    track.add("loss", some(0, 6 * CHUNK + 9), 2 * CHUNK)
    track.write()
    steps = np.concatenate(stored(file))[:, 0]
    assert steps[-1] == 6 * CHUNK + 8
    assert 2 * CHUNK <= len(steps) <= 3 * CHUNK


def test_no_points_are_no_error(file):
    track = ScalarTrack(file)
    track.add("loss", [])
    track.write()
    assert stored(file) == []


def test_numbers_of_other_kinds_are_numbers(file):
    import torch

    track = ScalarTrack(file)
    track.add("x", [(np.int64(1), 2.0, np.float32(0.5)), (2, 3.0, torch.tensor(0.25))])
    track.write()
    assert stored(file)[0][:, 2].tolist() == [0.5, 0.25]
