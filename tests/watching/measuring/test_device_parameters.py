"""Numbers of parameters as a device computes them; tests/modes has a device."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nethook.stats.fields import INDEX
from nethook.stats.rows import Rows
from nethook.watching.measuring.device_parameters import device_fingerprint


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_a_fingerprint_tells_bytes_apart(kind) -> None:
    tensor = torch.arange(1000).to(kind)
    mark = device_fingerprint(tensor)
    assert mark is not None
    assert 0 <= int(mark) < 1 << 52
    assert int(device_fingerprint(tensor.clone())) == int(mark)
    swapped = tensor.clone()
    swapped[[3, 4]] = tensor[[4, 3]]
    changed = tensor.clone()
    changed[-1] = 1
    others = [int(device_fingerprint(each)) for each in (swapped, changed, tensor[:-1])]
    assert int(mark) not in others
    assert len(set(others)) == 3


def test_large_tensors_are_sampled_and_some_have_none() -> None:
    large = torch.zeros(3 << 20)
    mark = int(device_fingerprint(large))
    large[3] = 1  # a step is 3
    assert int(device_fingerprint(large)) != mark
    assert device_fingerprint(torch.zeros(0)) is None
    assert device_fingerprint(torch.zeros(2, dtype=torch.complex64)) is None
    assert device_fingerprint(torch.zeros(2).to_sparse()) is None


def test_numbers_are_folded_into_their_rows_and_nan_is_none() -> None:
    rows = Rows(4)
    rows.fold_numbers([2, 0], torch.tensor([1.5, float("nan")], dtype=torch.float64))
    rows.fold_numbers([2, 0], torch.tensor([2.5, float("inf")], dtype=torch.float64))
    assert rows.away.tolist() == [2, 0, 2, 0]
    rows.collect()
    assert rows.away.tolist() == [0, 0, 0, 0]
    field = {name: rows.matrix[:, INDEX[name]] for name in ("count", "mean", "m2", "posinf", "max")}
    np.testing.assert_array_equal(field["count"], [1, 0, 2, 0])
    np.testing.assert_array_equal(field["posinf"], [1, 0, 0, 0])
    assert (field["mean"][2], field["m2"][2], field["max"][2]) == (2.0, 0.5, 2.5)


def test_what_is_not_finite_is_counted_row_by_row() -> None:
    rows = Rows(3)
    rows.fold_numbers([0, 2], torch.tensor([1.0, float("inf")], dtype=torch.float64))
    [counts] = rows.non_finite()
    assert counts.tolist() == [0, 0, 1]
