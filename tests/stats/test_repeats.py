"""Tensors that show their memory many times: both kernels, against numpy and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nethook.errors import OptionError
from nethook.stats.fields import INDEX, MOST_COUNTED, WIDTH
from nethook.stats.native import binding
from nethook.stats.repeats import histogram_step, once, stored_elements
from nethook.stats.rows import MOST_UNITS, Rows, near_ends
from nethook.stats.sampling import sampled
from nethook.stats.summary import summarise
from tests.stats.reference import assert_close, bin_of, reference_row, tolerance_of

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

KERNELS = ["torch", *[name for name in ("baseline", "avx2", "avx512") if binding.choose(name)]]
TYPES = ["float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128"]
TYPES += ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
TYPES += ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
HUGE = 2**40


@pytest.fixture(params=KERNELS)
def kernel(request, monkeypatch):
    """Each test once for every kernel and instruction set that runs here."""
    before = binding.instruction_set()
    if request.param == "torch":
        monkeypatch.setattr(binding, "fold", None)
        monkeypatch.setattr(binding, "has_warned", True)
    else:
        assert binding.choose(request.param)
    yield request.param
    if before is not None:
        binding.choose(before)


def fold(tensor, *, unit_dim=None, bounds=None, limit=2**62, factor=1.0):
    rows = Rows(1, limit=limit)
    slot = rows.slot(0, unit_dim=unit_dim, bounds=bounds)
    slot.fold(tensor, factor)
    rows.collect()
    assert not slot.skipped
    return rows.matrix[0], rows.histograms[0], slot.bits


def memory(name, size, seed=0):
    """Some memory of a type, with zeros, and for floats with numbers that are not finite."""
    generator = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, name)
    if dtype.is_complex:
        parts = torch.randn(size, 2, generator=generator, dtype=torch.float64)
        parts[::3, 0] = 0
        parts[::4, 1] = 0
        parts[5::11, 1] = math.nan
        part = {"complex32": torch.float16, "complex64": torch.float32}.get(name, torch.float64)
        return torch.view_as_complex(parts.to(part))
    if dtype.is_floating_point:
        x = torch.randn(size, generator=generator, dtype=torch.float64) * 3
        x[::3] = 0
        x[5::11] = math.nan
        if name in ("float16", "bfloat16", "float32", "float64", "float8_e5m2"):
            x[7::13] = math.inf
            x[9::17] = -math.inf
        return x.to(dtype)
    high = 2 if dtype == torch.bool else 100
    return torch.randint(0, high, (size,), generator=generator).to(dtype)


def raw(tensor):
    """The bytes of its elements in order: NaN is equal to itself, and every type has them."""
    flat = tensor.clone(memory_format=torch.contiguous_format).reshape(-1)
    return flat.view(torch.uint8).tolist()


def check(tensor, dense, unit_dim=None, bounds=None):
    """The summary of a tensor is that of its copy, of which every element is read by itself."""
    near = None if bounds is None else near_ends(bounds)
    row, histogram, bits = fold(tensor, unit_dim=unit_dim, bounds=bounds)
    as_read = dense.float() if dense.dtype.itemsize == 1 and dense.is_floating_point() else dense
    expected, bins, active = reference_row(as_read, unit_dim=unit_dim, near=near)
    assert_close(row, expected, tolerance_of(as_read.dtype))
    assert np.array_equal(histogram, bins)
    if active is not None:
        assert np.array_equal(bits, active)


@st.composite
def strided(draw):
    """A tensor of any sizes and strides over a little memory, and a copy of it made by numpy."""
    name = draw(st.sampled_from(TYPES))
    dims = draw(st.integers(0, 4))
    shape = [draw(st.integers(0, 6)) for _ in range(dims)]
    strides = [draw(st.sampled_from([0, 0, 1, 1, 2, 3, 4, 6, 7, 12])) for _ in range(dims)]
    offset = draw(st.integers(0, 3))
    need = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    base = memory(name, max(need, 0) + 1 + offset, draw(st.integers(0, 99)))
    tensor = base.as_strided(shape, strides, offset)
    # numpy does the striding, over numbers of the places: it knows nothing of torch's layouts.
    places = np.lib.stride_tricks.as_strided(
        np.arange(len(base))[offset:], shape, [8 * stride for stride in strides]
    )
    flat = [base[int(place)] for place in places.ravel()]
    dense = torch.stack(flat).reshape(shape) if flat else base[:0].reshape(shape)
    return tensor, dense


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_sizes_and_strides_agree_with_numpy(kernel, data):
    tensor, dense = data.draw(strided())
    unit_dim = data.draw(st.sampled_from([None, *range(tensor.dim())]))
    check(tensor, dense, unit_dim, data.draw(st.sampled_from([None, (-1.0, 1.0)])))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_sample_is_what_reshaping_would_give(data):
    tensor, dense = data.draw(strided())
    dim = data.draw(st.integers(0, tensor.dim()))
    most, step = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([None, 1, 3]))
    if not dense.numel():
        dim = 0
    flat = dense.reshape(*dense.shape[:dim], -1)
    jump = max(1, flat.shape[-1] // most) if step is None else step
    expected = flat[..., ::jump][..., :most]
    found = sampled(tensor, most, dim=dim, step=step)
    assert found.shape == expected.shape
    assert raw(found) == raw(expected)


@pytest.mark.parametrize("name", TYPES)
def test_elements_of_every_type_are_looked_up(name):
    tensor = memory(name, 60).view(5, 12).t()
    for found, expected in (
        (sampled(tensor, 9), tensor.reshape(-1)[::6][:9]),
        (sampled(tensor, 2, dim=1, step=3), tensor[:, ::3]),
    ):
        assert found.dtype == tensor.dtype
        assert raw(found) == raw(expected)


OVERLAPS = {
    "every window": lambda x: x.unfold(0, 50, 1),
    "windows of a batch": lambda x: x[:96].view(2, 24, 2).unfold(1, 12, 1),
    "a triangle": lambda x: x.as_strided((40, 40), (1, 1)),
    "apart inside": lambda x: x.as_strided((2, 2, 10, 10), (60, 0, 2, 2)),
    "with gaps": lambda x: x.as_strided((9, 9, 2), (3, 3, 1)),
    "three times": lambda x: x.as_strided((5, 6, 7), (1, 2, 3)),
    "expanded outside": lambda x: x[:10].as_strided((4, 6, 5, 3), (0, 1, 1, 0)),
}


@pytest.mark.parametrize("which", OVERLAPS)
@pytest.mark.parametrize("name", ["float32", "float64", "int32", "complex64", "bool"])
def test_overlapping_dimensions_are_counted(kernel, which, name):
    tensor = OVERLAPS[which](memory(name, 120, 3))
    assert once(tensor).counts is not None
    for unit_dim in (None, *range(tensor.dim())):
        check(tensor, tensor.clone(), unit_dim, (-1.0, 1.0))
    silent = tensor.new_zeros(120)
    silent[7] = 1
    for unit_dim in range(tensor.dim()):
        check(OVERLAPS[which](silent), OVERLAPS[which](silent).clone(), unit_dim)


@pytest.mark.parametrize("name", TYPES)
def test_a_huge_expansion_has_the_numbers_of_its_memory_many_times(kernel, name):
    """The closed form: with n elements, each k times, counts and m2 are k times those of n."""
    x = memory(name, 30, 1).view(3, 10)
    row, histogram, bits = fold(x, unit_dim=1, bounds=(-1.0, 1.0))
    tensor = x[:, None, :, None].expand(3, 2**30, 10, 2**10)
    found, bins, active = fold(tensor, unit_dim=2, bounds=(-1.0, 1.0))
    fields = ("count", "nan", "posinf", "neginf", "zeros", "near_low", "near_high", "bounded")
    for field in (*fields, "binned", "m2"):
        assert found[INDEX[field]] == row[INDEX[field]] * HUGE, field
    for field in ("tensors", "mean", "mean_low", "min", "max", "units", "active"):
        assert found[INDEX[field]] == row[INDEX[field]], field
    assert np.array_equal(bins, histogram * HUGE)
    assert np.array_equal(active, bits)


def test_an_overlap_of_a_trillion_elements(kernel):
    """The closed form: in (n, n) windows of one stride, element i counts n − |n − 1 − i| times."""
    n = 2**20
    x = torch.zeros(2 * n - 1, dtype=torch.float64)
    x[n - 1], x[0], x[3], x[-1] = 2.0, 5.0, math.nan, math.inf
    tensor = x.as_strided((n, n), (1, 1))
    row, histogram, bits = fold(tensor, unit_dim=0)
    assert row[INDEX["count"]] == n * n
    assert row[INDEX["nan"]] == 4
    assert row[INDEX["posinf"]] == 1
    assert row[INDEX["zeros"]] == n * n - 4 - 1 - n - 1
    assert histogram[bin_of(2.0)] == n
    assert histogram[bin_of(5.0)] == 1
    assert row[INDEX["binned"]] == n * n - 4
    finite = n * n - 5
    assert row[INDEX["mean"]] == pytest.approx((2.0 * n + 5.0) / finite, rel=1e-12)
    square = 4.0 * n + 25.0
    assert row[INDEX["m2"]] == pytest.approx(square - (2.0 * n + 5.0) ** 2 / finite, rel=1e-12)
    assert bits.all()  # every window has the middle, or the 5 in front of it


@pytest.mark.parametrize("elements", [2**62, 2**62 + 2**61])
def test_counts_beyond_what_a_float_holds_are_the_nearest(kernel, elements):
    row, histogram, _ = fold(torch.tensor([1.5]).expand(elements))
    assert row[INDEX["count"]] == float(elements)
    assert histogram.sum() == elements
    both = summarise(torch.tensor([1.5]).expand(elements))
    both = both + both
    assert both.count == 2 * elements
    assert both.histogram.max() == MOST_COUNTED
    assert (both.mean, both.std, both.quantile(0.5)) == (1.5, 0.0, 1.5)
    odd = torch.tensor([math.nan]).expand(elements - 1)
    assert summarise(odd).finite == 0


@pytest.mark.parametrize("limit", [3, 7, 100, 4096])
def test_the_histogram_of_a_huge_tensor_is_a_sample(kernel, limit):
    x = torch.arange(1.0, 8.0)
    _, histogram, _ = fold(x[:, None].expand(7, HUGE), limit=limit)
    assert 0 < histogram.sum() <= limit
    assert histogram.sum() == 7 * HUGE // histogram_step(x[:, None].expand(7, HUGE), limit)


def test_a_large_limit_reads_no_more_than_memory_has(kernel):
    _, histogram, _ = fold(torch.arange(1.0, 8.0)[:, None].expand(7, HUGE), limit=2**39)
    assert histogram.sum() == 7 * HUGE


def test_a_factor_is_applied_before_anything_is_repeated(kernel):
    row, _, _ = fold(torch.tensor([3.0]).expand(HUGE), factor=0.5)
    assert (row[INDEX["mean"]], row[INDEX["m2"]]) == (1.5, 0.0)
    x = torch.arange(1.0, 30.0)
    row, _, _ = fold(x.unfold(0, 10, 1), factor=2.0)
    assert row[INDEX["mean"]] == pytest.approx(2 * float(x.unfold(0, 10, 1).mean()))


def test_a_dimension_that_is_expanded_beyond_use_has_no_units(kernel):
    row, _, bits = fold(torch.ones(1).expand(3, MOST_UNITS + 1), unit_dim=1)
    assert row[INDEX["units"]] == 0
    assert bits is None
    assert row[INDEX["count"]] == 3 * (MOST_UNITS + 1)
    with pytest.raises(OptionError, match="at most 16,777,216 units; got one of 1,099,511,627,776"):
        summarise(torch.ones(1).expand(HUGE), unit_dim=0)


def test_negated_and_conjugated_views():
    x = torch.randn(40)
    for tensor in (torch._neg_view(x).unfold(0, 20, 1), torch._neg_view(x)[:, None].expand(40, 9)):
        check(tensor, tensor.clone().resolve_neg(), 0)
    z = torch.randn(40, dtype=torch.complex64).conj()
    check(z.unfold(0, 20, 1), z.unfold(0, 20, 1).clone().resolve_conj(), 1)


def test_the_memory_that_a_tensor_shows():
    x = torch.zeros(10, 7)
    for tensor, elements in (
        (x, 70), (x[:, ::3], 30), (x[:1].expand(HUGE, 7), 7), (x.view(-1).unfold(0, 60, 1), 70),
        (x[:0], 0), (torch.zeros(()), 1), (torch.zeros(0).expand(0), 0),
    ):  # fmt: skip
        assert stored_elements(tensor) == elements
        if binding.fold is not None:
            assert binding.bytes_of(tensor) == 4 * elements


@pytest.mark.skipif(binding.fold is None, reason="there is no native kernel")
def test_both_kernels_have_the_same_limits():
    assert binding.functions.MOST_UNITS == MOST_UNITS
    assert binding.functions.WIDTH == WIDTH
