"""Histograms and unit bits, packed."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.errors import NotARunError
from nethook.runs.format.schema import HISTOGRAM_BLOCK
from nethook.runs.format.sparse import pack_bits, pack_counts, unpack_bits, unpack_counts
from nethook.stats.fields import BINS


@given(st.integers(0, 2**32), st.integers(1, HISTOGRAM_BLOCK), st.integers(0, 62))
def test_counts_come_back(seed: int, rows: int, bits: int) -> None:
    random = np.random.default_rng(seed)
    counts = random.integers(0, 2**bits, (rows, BINS), endpoint=True)
    counts[random.random((rows, BINS)) < 0.8] = 0
    found = unpack_counts(pack_counts(counts))
    assert found.shape == (HISTOGRAM_BLOCK, BINS)
    assert np.array_equal(found[:rows], counts)
    assert not found[rows:].any()


def test_no_counts_at_all() -> None:
    assert not unpack_counts(pack_counts(np.zeros((3, BINS), dtype=np.int64))).any()


@given(st.lists(st.booleans(), max_size=300), st.integers(0, 40))
def test_bits_come_back_and_later_units_are_silent(bits: list[bool], more: int) -> None:
    packed = pack_bits(np.array(bits, dtype=np.uint8))
    assert unpack_bits(packed, len(bits) + more).tolist()[: len(bits)] == bits
    assert not unpack_bits(packed, len(bits) + more)[len(bits) :].any()


GOOD = pack_counts(np.full((2, BINS), 3))


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"\x03" + GOOD[1:],
        GOOD[:-3],
        b"\x01" + zlib.compress(bytes(10)),
        b"\x01" + zlib.compress(bytes(10**7)),
        b"\x02" + GOOD[1:],
        b"\x08" + zlib.compress(b"\x80" + bytes(HISTOGRAM_BLOCK * BINS // 8 - 1) + b"\xff" * 8),
    ],
)
def test_damaged_counts_are_refused(data: object) -> None:
    with pytest.raises(NotARunError):
        unpack_counts(data)


@pytest.mark.parametrize("data", [None, b"", b"junk", zlib.compress(bytes(10**6))])
def test_damaged_bits_are_refused(data: object) -> None:
    with pytest.raises(NotARunError):
        unpack_bits(data, 100)
