"""Packed numbers come back bit for bit, and nothing unpacks to more than it may."""

from __future__ import annotations

import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nethook.errors import NotARunError
from nethook.runs.format.packing import KINDS, pack, unpack

ODD = [
    0.0,
    -0.0,
    np.nan,
    np.inf,
    -np.inf,
    1.0,
    -1.0,
    255.0,
    256.0,
    -128.0,
    2.0**31,
    2.0**63,
    0.1,
    1e300,
    5e-324,
]


def kinds(data: bytes) -> list[str]:
    return [KINDS[kind] for kind in data[3 : 3 + data[0]]]


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a.view(np.int64), b.view(np.int64))


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=20),
        elements=st.one_of(
            st.sampled_from(ODD), st.floats(), st.integers(-(2**33), 2**33).map(float)
        ),
    )
)
def test_every_matrix_comes_back_bit_for_bit(matrix: np.ndarray) -> None:
    rows, columns = matrix.shape
    assert same(unpack(pack(matrix), columns=columns, max_rows=rows), matrix)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([0.0, 0.0], "zero"),
        ([-0.0, -0.0], "same"),
        ([7.25, 7.25], "same"),
        ([0.0, 255.0], "<u1"),
        ([-1.0, 5.0], "<i1"),
        ([0.0, 65535.0], "<u2"),
        ([-200.0, 5.0], "<i2"),
        ([0.0, 1e9], "<u4"),
        ([-1e9, 0.0], "<i4"),
        ([0.5, 0.25], "f3"),
        ([0.0, -0.0], "f3"),
        ([0.5, 1 + 2.0**-20], "<f4"),
        ([0.1, 0.25], "<f8"),
        ([1e300, 0.0], "<f8"),
    ],
)
def test_a_column_is_kept_in_the_smallest_type(column: list[float], kind: str) -> None:
    assert kinds(pack(np.array([column]).T)) == [kind]


def test_an_empty_matrix() -> None:
    assert unpack(pack(np.zeros((0, 3))), columns=3, max_rows=0).shape == (0, 3)


@pytest.mark.parametrize("worth", [0.0, 2.0])
def test_compressed_or_not_is_the_same(worth: float) -> None:
    matrix = np.random.default_rng(0).normal(size=(300, 3))
    assert same(unpack(pack(matrix, worth), columns=3, max_rows=300), matrix)


DATA = pack(np.random.default_rng(0).normal(size=(5, 3)), worth=2.0)


@pytest.mark.parametrize(
    "data",
    [
        None,
        "text",
        b"",
        b"\x03",
        DATA[:-1],
        DATA[:20],
        DATA[:6] + b"nonsense",
        bytes([4]) + DATA[1:],  # other columns
        DATA[:1] + b"\xff\xff" + DATA[3:],  # more rows than there may be
        DATA[:2] + b"\x80" + DATA[3:],  # said to be plain
        DATA[:3] + b"\xff" + DATA[4:],  # a kind that does not exist
        DATA[:3] + b"\x00" + DATA[4:],  # less than is there
        DATA[:6] + zlib.compress(bytes(10**7)),  # a bomb
    ],
)
def test_what_was_not_packed_is_refused(data: object) -> None:
    with pytest.raises(NotARunError):
        unpack(data, columns=3, max_rows=5)


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_read_but_never_worse(place: int, flip: int) -> None:
    broken = bytearray(DATA)
    broken[place] ^= flip
    with suppress(NotARunError):
        assert unpack(bytes(broken), columns=3, max_rows=5).shape[1] == 3


def test_a_bomb_costs_no_memory() -> None:
    import tracemalloc

    bomb = DATA[:6] + zlib.compress(bytes(10**8))
    tracemalloc.start()
    with pytest.raises(NotARunError, match="more than the 120 bytes"):
        unpack(bomb, columns=3, max_rows=5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6
