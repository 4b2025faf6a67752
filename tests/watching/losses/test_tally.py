"""Batches put together, against sums by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from nethook.watching.losses.samples import UNKNOWN
from nethook.watching.losses.tally import (
    Batch,
    PassTally,
    filled,
    is_on_device,
    packed,
    point_of_step,
)

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def scores(size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    chance = torch.Generator().manual_seed(seed)
    logits = torch.randn(size, 4, generator=chance, dtype=torch.float64)
    return logits, torch.randint(0, 4, (size,), generator=chance)


@given(SIZES)
def test_a_pass_is_what_torch_says_of_all_its_samples_at_once(sizes):
    parts = [scores(size, at) for at, size in enumerate(sizes)]
    whole = F.cross_entropy(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))
    for summed in (False, True):
        tally = PassTally()
        reduction = "sum" if summed else "mean"
        values = [F.cross_entropy(x, y, reduction=reduction).item() for x, y in parts]
        for value, size in zip(values, sizes, strict=True):
            tally.add(Batch(value, float(size), None, summed))
        point = tally.point()
        assert point.value == pytest.approx(whole.item(), rel=1e-12)
        assert (point.samples, point.batches) == (sum(sizes), len(sizes))
        assert point.batch_sum == pytest.approx(sum(values), rel=1e-12)


@given(SIZES)
def test_micro_batches_that_are_not_divided_have_the_mean_of_their_samples(sizes):
    parts = [scores(size, at) for at, size in enumerate(sizes)]
    whole = F.cross_entropy(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))
    batches = [
        Batch(F.cross_entropy(*part).item(), float(size))
        for part, size in zip(parts, sizes, strict=True)
    ]
    point = point_of_step(batches)
    assert point.value == pytest.approx(whole.item(), rel=1e-12)
    assert point.divided == 0


@given(st.integers(2, 8), st.integers(1, 9))
def test_divided_micro_batches_are_summed(count, size):
    values = [0.5 + at for at in range(count)]
    batches = [Batch(value / count, float(size), float(count)) for value in values]
    point = point_of_step(batches)
    mean = sum(values) / count
    assert point.value == pytest.approx(mean, rel=1e-12)
    assert point.divided == count
    assert point.sum / point.samples == pytest.approx(mean, rel=1e-12)
    assert point.batch_sum / point.batches == pytest.approx(mean, rel=1e-12)


def test_a_step_with_fewer_micro_batches_than_they_are_divided_by():
    point = point_of_step([Batch(0.25, 8.0, 4.0), Batch(0.5, 8.0, 4.0)])
    assert point.value == 0.75  # what the gradients are of
    assert point.sum / point.samples == 1.5  # the mean of what it was before it was divided


def test_a_sum_divided_by_the_samples_of_all_micro_batches():
    # As transformers' Trainer does: sum / num_items_in_batch, and nothing else.
    tokens = (10, 30)
    batches = [Batch(total / 40, float(count), 40.0, True) for total, count in
               zip((20.0, 100.0), tokens, strict=True)]  # fmt: skip
    point = point_of_step(batches)
    assert point.value == 3.0
    assert point.sum / point.samples == 3.0
    unknown = [batch._replace(divisor=UNKNOWN) for batch in batches]
    assert point_of_step(unknown).value == 3.0


def test_a_factor_that_is_no_division_stays_a_part_of_the_loss():
    (one,) = [point_of_step([Batch(60.0, 64.0, 2.0, True)])]  # 0.5 * sum
    assert (one.value, one.sum) == (60.0, 60.0)
    mean = point_of_step([Batch(60.0, 64.0, 64.0, True)])  # sum / 64
    assert mean.sum / mean.samples == 60.0
    three = point_of_step([Batch(value, 4.0, 2.0) for value in (1.0, 2.0, 3.0)])  # 0.5 * loss
    assert (three.value, three.divided) == (2.0, 0)


def test_a_batch_without_a_target_that_counts_counts_for_nothing():
    tally = PassTally()
    tally.add(Batch(2.0, 5.0))
    tally.add(Batch(math.nan, 0.0))
    assert tally.point().value == 2.0


def test_one_unknown_number_of_samples_makes_the_mean_one_over_batches():
    tally = PassTally()
    tally.add(Batch(1.0, 100.0))
    tally.add(Batch(2.0))
    assert tally.point().value == 1.5


def test_what_is_on_a_device_comes_back_in_its_place():
    batches = [
        Batch(torch.tensor(1.5), 4.0),
        Batch(2.0, torch.tensor(3)),
        Batch(torch.tensor(3.5), torch.tensor(7.0), 2.0, True),
    ]
    assert all(map(is_on_device, batches))
    numbers = packed(batches).tolist()
    assert numbers == [1.5, 3.0, 3.5, 7.0]
    known = filled(batches, numbers)
    assert known == [Batch(1.5, 4.0), Batch(2.0, 3.0), Batch(3.5, 7.0, 2.0, True)]
    assert not any(map(is_on_device, known))
