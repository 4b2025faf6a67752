"""Spans: at most so many, and every count is in exactly one of them."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from nethook.runs.format.schema import HISTOGRAM_BLOCK, TABLES, key, number_of
from nethook.runs.format.spans import Span, SpanTrack, smallest_pair
from nethook.runs.format.sparse import unpack_bits, unpack_counts
from nethook.stats.fields import BINS
from nethook.stats.sheet import Sheet, layout_of


@pytest.fixture
def connection():
    made = sqlite3.connect(":memory:", isolation_level=None)
    for statement in TABLES.values():
        made.execute(statement)
    yield made
    made.close()


def window(layout, step: int, steps: int = 1) -> Sheet:
    made = Sheet(layout)
    random = np.random.default_rng(step)
    made.histograms[...] = random.integers(0, 5, made.histograms.shape)
    made.bits[...] = random.random(made.bits.size) < 0.05
    made.first_step, made.last_step, made.steps = step, step + steps - 1, steps
    return made


def read(connection, blocks: int, units: int):
    spans = connection.execute("SELECT key, windows, first_step, last_step FROM spans ORDER BY key")
    found = []
    for packed, *rest in spans.fetchall():
        number = number_of(packed)
        counts, bits = [], []
        for block in range(blocks):
            place = (key("train", number, block=block),)
            rows = connection.execute("SELECT data FROM histograms WHERE key = ?", place).fetchall()
            counts.append(unpack_counts(rows[0][0]))
            rows = connection.execute("SELECT data FROM unit_bits WHERE key = ?", place).fetchall()
            bits.append(unpack_bits(rows[0][0], units) if rows else np.zeros(units, dtype=np.uint8))
        found.append((number, *rest, np.concatenate(counts), np.concatenate(bits)))
    return found


def test_spans_never_exceed_the_limit_and_merge_exactly(connection) -> None:
    layout = layout_of([3] * (HISTOGRAM_BLOCK + 4))
    track = SpanTrack("train", connection, most=8)
    windows = [window(layout, step) for step in range(100)]
    for number, each in enumerate(windows):
        track.add(number, each)
        if number % 7 == 0:
            track.write()
        assert connection.execute("SELECT count(*) FROM spans").fetchone()[0] <= 8
    track.write()
    found = read(connection, 2, 3 * HISTOGRAM_BLOCK)
    assert 4 <= len(found) <= 8
    assert sum(span[1] for span in found) == 100
    assert found[0][2] == 0
    assert [span[2] for span in found[1:]] == [span[3] + 1 for span in found[:-1]]
    assert found[-1][3] == 99
    for number, count, first, last, counts, bits in found:
        members = windows[number : number + count]
        assert (first, last) == (members[0].first_step, members[-1].last_step)
        assert np.array_equal(counts[: len(layout)], sum(each.histograms for each in members))
        want = np.bitwise_or.reduce([each.bits for each in members])
        assert np.array_equal(bits[: want.size], want)
    # Nothing of a span that was merged away is left behind.
    assert connection.execute("SELECT count(*) FROM histograms").fetchone()[0] == 2 * len(found)


def test_spans_are_about_equally_long(connection) -> None:
    track = SpanTrack("train", connection, most=16)
    layout = layout_of([0])
    for number in range(2000):
        track.add(number, window(layout, number))
    track.write()
    sizes = [row[0] for row in connection.execute("SELECT windows FROM spans")]
    assert max(sizes[:-1]) <= 4 * min(sizes[:-1])


def test_an_open_window_is_shown_and_not_counted_twice(connection) -> None:
    track = SpanTrack("train", connection)
    layout = layout_of([2])
    begun, whole = window(layout, 0), window(layout, 0, steps=3)
    track.show(0, begun)
    assert np.array_equal(read(connection, 1, 2)[0][4][0], begun.histograms[0])
    track.add(0, whole)
    track.write()
    ((number, windows, first, last, counts, _),) = read(connection, 1, 2)
    assert (number, windows, first, last) == (0, 1, 0, 2)
    assert np.array_equal(counts[0], whole.histograms[0])


def test_series_that_come_later_have_room(connection) -> None:
    track = SpanTrack("train", connection, most=4)
    for number in range(10):
        layout = layout_of([2] * (1 + 3 * number))
        track.add(number, window(layout, number))
    track.write()
    total = sum(span[4].sum() for span in read(connection, 1, 2 * HISTOGRAM_BLOCK))
    assert total > 0


def test_a_track_is_taken_up_where_it_was(connection) -> None:
    layout = layout_of([0])
    for begin in (0, 10, 20):
        track = SpanTrack("train", connection, most=8)
        for number in range(begin, begin + 10):
            track.add(number, window(layout, number))
        track.write()
    sizes = [row[0] for row in connection.execute("SELECT windows FROM spans")]
    assert sum(sizes) == 30
    assert len(sizes) <= 9  # what was open at the end of one is closed in the next


def test_the_smallest_neighbours_merge_first() -> None:
    spans = [Span(0, 4, 0, 3), Span(4, 2, 4, 5), Span(6, 1, 6, 6), Span(7, 5, 7, 11)]
    assert smallest_pair(spans) == 1


def test_bins_are_whole_bytes_in_a_block() -> None:
    assert HISTOGRAM_BLOCK * BINS % 8 == 0
