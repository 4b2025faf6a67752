"""The table of fields, the edges of the bins, and merging rows in any order."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.stats import fields
from nethook.stats.fields import (
    BINS,
    FIELDS,
    INDEX,
    RULES,
    WIDTH,
    ZERO_BIN,
    bin_values,
    empty_rows,
    magnitude_edges,
    merge_rows,
    reduce_rows,
)
from tests.stats.reference import assert_close, reference_row

FOLDER = Path(fields.__file__).parent / "native"
SOURCE = (FOLDER / "pass.h").read_text(encoding="utf-8")


def rows_of(*parts):
    """One exact row for each list of numbers, its mean split in two floats."""
    rows = []
    for part in parts:
        tensor = torch.tensor(part, dtype=torch.float64)
        rows.append(reference_row(tensor)[0])
    return rows


def test_every_field_has_a_rule():
    assert tuple(RULES) == FIELDS
    assert set(RULES.values()) == {"sum", "min", "max", "chan"}


def test_the_native_kernel_has_the_same_fields_in_the_same_order():
    (listed,) = re.findall(r"enum Field \{(.*?)\}", SOURCE, re.DOTALL)
    names = [name.strip().lower() for name in listed.split(",")]
    assert names == [*[{"nan": "nans"}.get(name, name) for name in FIELDS], "width"]


@pytest.mark.parametrize(
    "file", sorted(each.name for each in FOLDER.iterdir() if each.suffix in (".h", ".cpp"))
)
def test_the_native_kernel_is_short_files(file):
    lines = (FOLDER / file).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 700
    assert max(map(len, lines)) <= 100


def test_bins_are_narrower_than_nine_percent():
    edges, middles = magnitude_edges(), bin_values()
    assert len(middles) == BINS
    assert len(edges) == ZERO_BIN
    assert np.array_equal(middles, -middles[::-1])
    inner = middles[ZERO_BIN + 2 : -1]
    assert np.all(np.abs(inner / edges[1:-1] - 1) < 0.09)
    assert np.all(np.abs(inner / edges[2:] - 1) < 0.09)
    assert edges[1] == 2.0**-40
    assert edges[-1] == 2.0**40
    # Every edge is a number of every float type that reaches so far.
    assert np.array_equal(torch.tensor(edges).bfloat16().double().numpy(), edges)


numbers = st.lists(
    st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=0, max_size=12
)


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(numbers, min_size=1, max_size=5), seed=st.randoms())
def test_merging_in_any_order_gives_the_row_of_all(parts, seed):
    whole = rows_of(list(itertools.chain(*parts)))[0]
    whole[INDEX["tensors"]] = len(parts)
    rows = rows_of(*parts)
    for _ in range(3):
        seed.shuffle(rows)
        one_by_one = empty_rows()
        for row in rows:
            one_by_one = merge_rows(one_by_one, row)
        assert_close(one_by_one, whole, 1e-12)
    assert_close(reduce_rows(np.array(rows)), whole, 1e-12)


def test_merging_with_a_large_offset_adds_at_most_1e_12():
    generator = torch.Generator().manual_seed(0)
    x = 1e6 + 1e-3 * torch.randn(3000, generator=generator, dtype=torch.float64)
    from nethook.stats.rows import Rows

    cuts = sorted(torch.randint(0, 3000, (40,), generator=generator).tolist())
    rows = Rows(len(cuts) + 1)
    for place, part in enumerate(torch.tensor_split(x, cuts)):
        rows.slot(place).fold(part)
    whole = reference_row(x)[0]
    for order in range(5):
        shuffled = np.random.default_rng(order).permutation(rows.matrix)
        merged = empty_rows()
        for row in shuffled:
            merge_rows(merged, row, out=merged)
        for result in (merged, reduce_rows(shuffled)):
            mean, m2 = INDEX["mean"], INDEX["m2"]
            assert result[mean] == pytest.approx(whole[mean], rel=1e-12, abs=0)
            assert math.sqrt(result[m2]) == pytest.approx(math.sqrt(whole[m2]), rel=1e-12, abs=0)


def test_an_empty_row_changes_no_bit():
    row = rows_of([0.1, 0.2, 0.3, math.nan])[0]
    row[INDEX["mean_low"]] = 1e-18
    for a, b in ((row, empty_rows()), (empty_rows(), row)):
        assert merge_rows(a, b).tobytes() == row.tobytes()
    assert np.array_equal(reduce_rows(empty_rows(0)), empty_rows())


def test_whole_matrices_merge_at_once_and_in_place():
    rng = np.random.default_rng(0)
    a = np.array(rows_of(*rng.normal(size=(6, 9)).tolist())).reshape(2, 3, WIDTH)
    b = np.array(rows_of(*rng.normal(size=(6, 5)).tolist())).reshape(2, 3, WIDTH)
    merged = merge_rows(a, b)
    for i, j in np.ndindex(2, 3):
        assert np.array_equal(merged[i, j], merge_rows(a[i, j], b[i, j]))
    assert np.array_equal(merge_rows(a, b[0, 0])[1, 2], merge_rows(a[1, 2], b[0, 0]))
    assert merge_rows(a, b, out=a) is a
    assert np.array_equal(a, merged)


def test_numbers_near_the_limit_merge_without_a_warning():
    merged = merge_rows(*rows_of([1.7e308], [-1.7e308]))
    assert merged[INDEX["m2"]] == math.inf
    assert merged[INDEX["mean"]] == 0
