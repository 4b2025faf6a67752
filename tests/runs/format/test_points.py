"""Scalars as they are written: in chunks, of which the last is written again and again."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.errors import NotARunError
from nethook.runs.format.packing import pack
from nethook.runs.format.points import (
    BUCKETED,
    LOSS,
    ScalarTrack,
    as_losses,
    buckets_of,
    pack_points,
    unpack_chunks,
    unpack_points,
)
from nethook.runs.format.schema import CHUNK, TABLES


@pytest.fixture
def file():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
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


# -- losses ----------------------------------------------------------------------------------------

NUMBERS = st.floats(-1e9, 1e9) | st.sampled_from([float("nan"), float("inf")])


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**9), NUMBERS, st.integers(0, 99) | st.just(float("nan")),
            st.integers(1, 9), st.integers(0, 9), NUMBERS, NUMBERS, st.booleans(),
        ),
        min_size=1,
        max_size=40,
    )
)  # fmt: skip
def test_points_of_losses_come_back(made):
    rows = []
    for step, value, samples, batches, divided, total, of_batches, usual in made:
        if usual:
            total, of_batches = value * samples, value * (divided or batches)
        rows.append((step, 1e9, value, samples, batches, divided, total, of_batches))
    table = np.array(rows, dtype=np.float64)
    found = unpack_points(pack_points(table), int(table[0, 0]), 1e9)
    assert np.array_equal(found[:, :6], table[:, :6], equal_nan=True)
    # What differs from the usual sum is kept as the difference, which rounds.
    scale = np.nanmax(np.abs(np.where(np.isfinite(table), table, 0))) * 100
    for column in (6, 7):
        known = np.isfinite(table[:, column]) & np.isfinite(table[:, 2])
        known &= ~np.isnan(table[:, 3]) | (column == 7)
        assert np.allclose(found[known, column], table[known, column], rtol=0, atol=1e-15 * scale)


def test_sums_that_are_the_usual_ones_take_no_room():
    table = np.array(
        [(at, 1e9, 1 / (at + 1), 64, 1, 0, 64 / (at + 1), 1 / (at + 1)) for at in range(CHUNK)]
    )
    plain, whole = pack_points(table[:, :3]), pack_points(table)
    assert len(whole) < len(plain) + 64


def test_a_chunk_may_have_become_one_of_a_loss(file):
    track = ScalarTrack(file)
    track.add("loss", some(0, 3))
    track.add("loss", [(3, 1003.0, 5.0, 8.0, 1.0, 0.0, 40.0, 5.0)])
    track.add("loss", [(4, 1004.0, 6.0)])
    track.write()
    (table,) = stored(file)
    assert table.shape == (5, len(LOSS))
    assert table[:, 2].tolist() == [0.0, 1.0, 2.0, 5.0, 6.0]
    assert np.array_equal(np.isnan(table[:, 3]), [True, True, True, False, True])


def test_what_a_longer_keep_asks_for_is_kept_from_then_on(file):
    ScalarTrack(file).add("loss", some(0, 3), 100)
    track = ScalarTrack(file)
    track.add("loss", some(3, 8 * CHUNK), 4 * CHUNK)
    track.write()
    assert file.execute("SELECT keep FROM scalar_names").fetchone() == (4 * CHUNK,)
    assert sum(map(len, stored(file))) >= 4 * CHUNK


def test_the_last_chunk_is_filled_by_whoever_goes_on(file):
    for first in range(0, 40, 10):
        track = ScalarTrack(file)
        track.add("loss", some(first, 10))
        track.write()
    assert [len(each) for each in stored(file)] == [40]
    track.cut("loss", 25)
    track.add("loss", some(25, 1))
    track.write()
    assert [each[:, 0].tolist() for each in stored(file)] == [list(range(26))]


def test_buckets_are_min_max_and_mean_of_what_is_finite():
    values = [1.0, float("nan"), 5.0, *[2.0] * (BUCKETED - 3), float("inf")]
    table = np.array([(at, 1e9, value) for at, value in enumerate(values)])
    both = buckets_of(table)
    assert both.shape[0] == 2
    first = both[0]
    assert (first[0], first[5], first[7]) == (BUCKETED - 1, 0, BUCKETED)
    assert first[2] == pytest.approx((6.0 + 2.0 * (BUCKETED - 3)) / (BUCKETED - 1))
    assert (first[3], first[4]) == (1.0, 5.0)
    assert np.isnan(both[1, 2:5]).all()


def test_a_chunk_with_other_columns_is_refused():
    with pytest.raises(NotARunError, match="has 4 columns"):
        unpack_chunks([(0, 0.0, pack(np.zeros((2, 4))))])
    with pytest.raises(NotARunError):
        unpack_chunks([(0, 0.0, None)])
    assert as_losses(np.zeros((0, 3))).shape == (0, len(LOSS))
