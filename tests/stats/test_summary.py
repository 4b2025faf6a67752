"""What people read: numbers, quantiles, merging, and the text."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.errors import InputsError, OptionError
from nethook.stats.fields import FIELDS, empty_rows
from nethook.stats.rows import Rows
from nethook.stats.summary import Summary, summarise, summary_of

X = torch.tensor([[0.0, 1.0, -2.0], [0.0, 3.0, 4.0]])


def test_the_numbers():
    s = summarise(X, unit_dim=1, bounds=(-4.0, 4.0))
    assert (s.count, s.finite, s.zeros, s.tensors) == (6, 6, 2, 1)
    assert s.mean == 1.0
    assert s.var == pytest.approx(float(X.var(correction=0)))
    assert s.std == pytest.approx(float(X.std(correction=0)))
    assert s.rms == pytest.approx(float(X.square().mean().sqrt()))
    assert s.norm == pytest.approx(float(X.norm()))
    assert (s.min, s.max) == (-2.0, 4.0)
    assert s.zero_share == pytest.approx(1 / 3)
    assert s.non_finite_share == 0
    assert s.units == 3
    assert s.dead_share == pytest.approx(1 / 3)
    assert s.near_high_share == pytest.approx(1 / 6)
    assert s.near_low_share == 0


def test_non_finite_elements_are_counted_and_leave_the_rest_alone():
    s = summarise(torch.tensor([1.0, math.nan, math.inf, -math.inf, 3.0]))
    assert (s.nan, s.posinf, s.neginf) == (1, 1, 1)
    assert (s.mean, s.min, s.max) == (2.0, 1.0, 3.0)
    assert s.non_finite_share == pytest.approx(3 / 5)


def test_nothing_at_all_is_not_a_number():
    for s in (Summary(), summarise(torch.empty(0)), summarise(torch.tensor(math.nan))):
        for value in (s.mean, s.std, s.var, s.rms, s.min, s.max, s.quantile(0.5)):
            assert math.isnan(value)
        assert s.norm == 0
    assert math.isnan(Summary().zero_share)
    assert math.isnan(Summary().dead_share)
    assert math.isnan(Summary().near_low_share)
    assert math.isnan(Summary().non_finite_share)


values = st.floats(min_value=2.0**-39, max_value=2.0**39).flatmap(
    lambda x: st.sampled_from([x, -x, 0.0])
)


@settings(max_examples=200, deadline=None)
@given(numbers=st.lists(values, min_size=1, max_size=60), q=st.floats(0, 1))
def test_quantiles_are_within_nine_percent(numbers, q):
    x = torch.tensor(numbers, dtype=torch.float64)
    got = summarise(x).quantile(q)
    rank = max(math.ceil(q * len(numbers)), 1)
    true = sorted(numbers)[rank - 1]
    assert abs(got - true) <= 0.09 * abs(true)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6])
def test_quantiles_of_a_sample_of_a_large_tensor(scale):
    x = torch.randn(300_000, generator=torch.Generator().manual_seed(1)).abs() * scale
    s = summarise(x, limit=4096)
    assert s.histogram is not None
    assert 2048 < s.histogram.sum() <= 4096
    for q in (0.1, 0.5, 0.9):
        assert s.quantile(q) == pytest.approx(float(x.quantile(q)), rel=0.15)


def test_quantiles_with_infinite_elements():
    s = summarise(torch.tensor([-math.inf, 1.0, 2.0, math.inf, math.nan]))
    assert s.quantile(0.0) == -math.inf
    assert s.quantile(0.25) == -math.inf
    assert s.quantile(0.5) == pytest.approx(1.0, rel=0.09)
    assert s.quantile(1.0) == math.inf
    with pytest.raises(OptionError, match="`q` must be between 0 and 1; got 2"):
        s.quantile(2)


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(st.integers(0, 200), max_size=4), seed=st.integers(0, 1000))
def test_merging_is_summarising_the_whole(cuts, seed):
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x = x.relu() + 1e3
    x[:, 1] = 0
    parts = [summarise(part, unit_dim=1) for part in torch.tensor_split(x, sorted(cuts))]
    whole, merged = summarise(x, unit_dim=1), sum(parts)
    backwards = sum(parts[::-1])
    for s in (merged, backwards):
        assert s.std == pytest.approx(whole.std, rel=1e-12)
        assert s.mean == pytest.approx(whole.mean, rel=1e-12)
        assert np.array_equal(s.histogram, whole.histogram)
        assert np.array_equal(s.bits, whole.bits)
        assert s.dead_share == whole.dead_share == pytest.approx(1 / 3)
        assert (s.count, s.min, s.max) == (whole.count, whole.min, whole.max)


def test_merging_what_does_not_fit():
    with pytest.raises(OptionError, match="3 units cannot be merged with one of 2"):
        summarise(X, unit_dim=1) + summarise(X, unit_dim=0)
    with pytest.raises(TypeError):
        summarise(X) + 3
    with_none = summarise(X) + summarise(X, histogram=False)
    assert with_none.histogram.sum() == 6
    assert (Summary(skipped={"sparse": 1}) + Summary(skipped={"sparse": 2})).skipped["sparse"] == 3


def test_a_running_summary_is_read_at_any_time():
    rows = Rows(2)
    slot = rows.slot(1, unit_dim=1)
    slot.fold(X)
    first = summary_of(slot)
    slot.fold(X + 1)
    slot.fold(X.to_sparse())
    assert (first.count, first.tensors, dict(first.skipped)) == (6, 1, {})
    second = summary_of(slot)
    assert (second.count, second.tensors, dict(second.skipped)) == (12, 2, {"sparse": 1})
    assert second.mean == 1.5


def test_it_cannot_be_changed():
    s = summarise(X, unit_dim=1)
    for array in (s.row, s.histogram, s.bits):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    with pytest.raises(AttributeError):
        s.row = empty_rows()
    with pytest.raises(OptionError, match="`row` must have the shape"):
        Summary(np.zeros(3))
    with pytest.raises(OptionError, match="`histogram` must have the shape"):
        Summary(empty_rows(), np.zeros(3, np.int64))


def test_the_text():
    x = torch.tensor([[0.0, 1.0, math.nan], [0.0, 3.0, math.inf]])
    assert repr(summarise(x, unit_dim=1, bounds=(0.0, 3.0))) == (
        "Summary(6 elements, mean 1, std 1.225, min 0, max 3, median 1.09, 33.3% zero, 1 NaN, "
        "1 +Inf, 75.0% near the ends, 1 of 3 units dead)"
    )
    assert repr(Summary(skipped={"sparse": 2})) == "Summary(0 elements, not summarised: 2 sparse)"


def test_plain_data():
    plain = summarise(X, unit_dim=1).to_dict()
    assert set(FIELDS) < set(plain)
    assert plain["silent"] == [0]
    assert sum(plain["histogram"]) == 6
    assert summarise(X, histogram=False).to_dict()["histogram"] is None


def test_what_is_not_a_dense_tensor_is_refused_with_what_to_type():
    with pytest.raises(InputsError, match=r"not summarised: sparse .*Pass tensor\.to_dense\(\)"):
        summarise(torch.eye(3).to_sparse())
    with pytest.raises(InputsError, match=r"`tensor` must be a torch\.Tensor; got list"):
        summarise([1.0])
    with pytest.raises(
        OptionError, match="`unit_dim` must be one of the tensor's 2 dimensions; got 2"
    ):
        summarise(X, unit_dim=2)
    with pytest.raises(OptionError, match="low < high"):
        summarise(X, bounds=(1.0, 0.0))
