"""Snapshots from a file that may come from a stranger."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest

from nethook.errors import NotARunError
from nethook.runs.format.schema import MAX_SNAPSHOT
from nethook.runs.reading.snapshots import unpack_snapshot


def packed(values):
    return zlib.compress(np.asarray(values, "<f4").tobytes())


@pytest.mark.parametrize("shape", [(1,), (3, 4), (2, 3, 4, 5)])
def test_what_was_packed(shape):
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    read = unpack_snapshot(json.dumps(shape), packed(values))
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize("shape", ["3", "null", '["3"]', "[2.0]", "[-1]", f"[{MAX_SNAPSHOT + 1}]"])
def test_no_shape(shape):
    with pytest.raises(NotARunError, match="has no shape"):
        unpack_snapshot(shape, packed([1, 2]))


@pytest.mark.parametrize(
    ("shape", "data"),
    [
        ("[0]", b""),
        (f"[{MAX_SNAPSHOT}, 2]", b""),
        ("[2]", "text"),
        ("[2]", None),
    ],
)
def test_larger_than_any_or_no_bytes(shape, data):
    with pytest.raises(NotARunError, match="larger than any that nethook writes"):
        unpack_snapshot(shape, data)


def test_sizes_that_do_not_fit():
    for values in ([1], [1, 2, 3], np.zeros(10**6)):
        with pytest.raises(NotARunError, match="does not have the size of its shape"):
            unpack_snapshot("[2]", packed(values))


def test_damaged_bytes():
    with pytest.raises(NotARunError, match="cannot be unpacked"):
        unpack_snapshot("[2]", b"no zlib stream")
