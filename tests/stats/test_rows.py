"""Rows and slots: both kernels against brute force, over shapes, strides, types and odd numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nethook.errors import OptionError
from nethook.stats import torch_kernel
from nethook.stats.fields import FIELDS
from nethook.stats.native import binding
from nethook.stats.rows import Rows, near_ends
from tests.stats.reference import assert_close, reference_row, tolerance_of, values

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

KERNELS = ["torch", *[name for name in ("baseline", "avx2", "avx512") if binding.choose(name)]]
for _best in KERNELS[1:]:
    binding.choose(_best)

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
WHOLE = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
WHOLE += [torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex32, torch.complex64, torch.complex128]

ODD = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 2.0**-40, 2.0**40, 1e-20, 3e38, 1e-45]
ODD += [1.1875, 1.4140625, 1.6796875, 6e-8, 65504.0, -(2.0**-41), -(2.0**39)]


@pytest.fixture(params=KERNELS, autouse=True)
def kernel(request, monkeypatch):
    """Each test once for every kernel and instruction set that runs here."""
    if request.param == "torch":
        monkeypatch.setattr(binding, "fold", None)
        monkeypatch.setattr(binding, "has_warned", True)
        yield "torch"
        return
    before = binding.instruction_set()
    assert binding.choose(request.param)
    yield request.param
    binding.choose(before)


def fold(tensor, *, unit_dim=None, bounds=None, limit=2**62, times=1):
    rows = Rows(1, limit=limit)
    slot = rows.slot(0, unit_dim=unit_dim, bounds=bounds)
    for _ in range(times):
        slot.fold(tensor)
    rows.collect()
    assert not slot.skipped
    return rows.matrix[0], rows.histograms[0], slot.bits


def check(tensor, *, unit_dim=None, bounds=None):
    row, histogram, bits = fold(tensor, unit_dim=unit_dim, bounds=bounds)
    near = None if bounds is None else near_ends(bounds)
    expected, bins, active = reference_row(tensor, unit_dim=unit_dim, near=near)
    assert_close(row, expected, tolerance_of(tensor.dtype))
    assert np.array_equal(histogram, bins)
    if active is not None:
        assert np.array_equal(bits, active)


def make(dtype, shape, seed, odd):
    """A tensor with ordinary and odd numbers in it."""
    generator = torch.Generator().manual_seed(seed)
    if dtype in COMPLEX:
        part = {torch.complex32: torch.float16, torch.complex64: torch.float32}
        part = part.get(dtype, torch.float64)
        return torch.view_as_complex(make(part, (*shape, 2), seed, odd).contiguous())
    if dtype in WHOLE:
        high = 2 if dtype == torch.bool else min(torch.iinfo(dtype).max, 2**40)
        low = 0 if dtype == torch.bool else max(torch.iinfo(dtype).min, -(2**40))
        return torch.randint(low, high, shape, generator=generator).to(dtype)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    x = x * 10 ** torch.randint(-6, 5, shape, generator=generator)
    if odd:
        pick = torch.randint(0, len(ODD) * 3, shape, generator=generator)
        choice = torch.tensor([*ODD, *[0.5] * 2 * len(ODD)], dtype=torch.float64)[pick]
        x = torch.where(pick < len(ODD), choice, x)
    return x.to(dtype)


@st.composite
def layouts(draw):
    """A tensor in some layout: permuted, sliced, expanded, offset, channels last, transposed."""
    dtype = draw(st.sampled_from(FLOATS + WHOLE + COMPLEX))
    shape = tuple(draw(st.lists(st.integers(0, 7), max_size=4)))
    seed = draw(st.integers(0, 2**20))
    tensor = make(dtype, shape, seed, draw(st.booleans()))
    for step in draw(
        st.lists(st.sampled_from(["permute", "slice", "expand", "offset"]), max_size=3)
    ):
        dims = tensor.dim()
        if step == "permute" and dims:
            tensor = tensor.permute(draw(st.permutations(range(dims))))
        elif step == "slice" and dims:
            dim = draw(st.integers(0, dims - 1))
            begin, jump = draw(st.integers(0, 2)), draw(st.integers(1, 3))
            tensor = tensor[(slice(None),) * dim + (slice(begin, None, jump),)]
        elif step == "expand":
            tensor = tensor.unsqueeze(draw(st.integers(0, dims)))
            tensor = tensor.expand([3 if size == 1 else size for size in tensor.shape])
        elif step == "offset":
            flat = torch.cat([torch.ones(3, dtype=torch.float32).to(dtype), tensor.reshape(-1)])
            tensor = flat[3:].reshape(tensor.shape)
    return tensor


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_layout_and_type_agrees_with_brute_force(data):
    tensor = data.draw(layouts())
    unit_dim = data.draw(st.sampled_from([None, *range(tensor.dim())]))
    bounds = data.draw(st.sampled_from([None, (0.0, 1.0), (-1.0, 1.0)]))
    check(tensor, unit_dim=unit_dim, bounds=bounds)


@pytest.mark.parametrize("dtype", FLOATS + WHOLE + COMPLEX, ids=str)
@pytest.mark.parametrize("size", [2, 255, 257, 2049, 5000])
def test_sizes_around_the_edges_of_a_block(dtype, size):
    check(make(dtype, (size,), size, odd=False))
    check(make(dtype, (size,), size, odd=True))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_memory_formats(dtype, memory):
    x = make(dtype, (3, 40, 5, 7), 1, odd=True).to(memory_format=memory)
    for unit_dim in (None, 0, 1, 3):
        check(x, unit_dim=unit_dim)
    check(x[:, 3:30], unit_dim=1)
    check(x.transpose(1, 2)[..., ::2], unit_dim=2)


@pytest.mark.parametrize(
    ("dtype", "mean", "std"),
    [
        (torch.float32, 1e4, 1.0),
        (torch.float64, 1e6, 1e-3),
        (torch.float64, -1e12, 1.0),
        (torch.float32, -3e37, 1e33),
        (torch.float16, 1000.0, 1.0),
        (torch.float32, 1e-30, 1e-33),
    ],
)
@pytest.mark.parametrize("size", [10, 9000])
def test_a_large_offset_costs_no_digits(dtype, mean, std, size):
    generator = torch.Generator().manual_seed(size)
    x = torch.randn(size, generator=generator, dtype=torch.float64) * std + mean
    check(x.to(dtype))


def test_a_constant_has_no_deviation():
    for value in (0.1, -3.7e12, 1e-30):
        for dtype in (torch.float32, torch.float64):
            row, _, _ = fold(torch.full((4999,), value, dtype=dtype))
            assert row[9] == 0
            assert row[7] == float(torch.tensor(value, dtype=dtype))


def test_an_outlier_in_the_first_place():
    x = torch.ones(3000, dtype=torch.float64)
    x[0] = 1e12
    check(x)
    check(x.flip(0))
    check(torch.linspace(0, 1e6, 9999, dtype=torch.float64))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nothing_but_one_non_finite_number(value, dtype):
    check(torch.full((300,), value, dtype=dtype))
    x = torch.arange(3000).to(dtype)
    x[1234] = value
    check(x)


def test_float64_near_its_limit_keeps_its_mean():
    row, _, _ = fold(torch.tensor([1.7e308, 1.7e308, 1.5e308], dtype=torch.float64))
    assert row[10] == 1.5e308
    assert row[11] == 1.7e308
    assert not math.isnan(row[7])
    if binding.fold is not None:
        assert row[7] == pytest.approx(1.6333333e308)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2)])
def test_an_empty_tensor_is_a_tensor_without_elements(shape):
    for unit_dim in (None, *range(len(shape))):
        check(torch.empty(shape), unit_dim=unit_dim)


def test_a_scalar():
    check(torch.tensor(2.5))
    check(torch.tensor(math.nan))


def test_subnormals_of_every_float_type():
    half = torch.arange(0, 2**16, 7, dtype=torch.int32).to(torch.int16)
    check(half.view(torch.float16))
    check(half.view(torch.bfloat16))
    check(torch.tensor([1e-45, -1e-45, 1e-40, 0.0]))
    check(torch.tensor([5e-324, -5e-324, 1e-310, 0.0], dtype=torch.float64))


def test_complex_numbers_whose_squares_overflow():
    x = torch.tensor([1e200 + 1e200j, 3e-200 + 4e-200j, 0j, 1e300 + 0j], dtype=torch.complex128)
    row, histogram, _ = fold(x)
    expected, bins, _ = reference_row(x)
    assert np.array_equal(histogram, bins)
    assert row[10] == expected[10] == 0
    assert row[11] == expected[11]
    nan = complex(math.nan, math.inf)
    check(torch.tensor([nan, complex(math.inf, 1.0)], dtype=torch.complex64))
    check(torch.tensor([nan, complex(math.inf, 1.0)], dtype=torch.complex128))


@pytest.mark.parametrize("limit", [1, 7, 100, 4096])
def test_the_histogram_of_a_large_tensor_reads_a_step_that_rotates(limit):
    x = make(torch.float32, (6, 8, 9, 11), 3, odd=True)
    for tensor in (x, x.to(memory_format=torch.channels_last), x[:, ::2], x[0, 0, 0].expand(4, 11)):
        rows = Rows(1, limit=limit)
        slot = rows.slot(0)
        seen = values(tensor)
        n = len(seen)
        step = 1 if n <= limit else -(-n // limit) | 1
        for turn in range(step + 2):
            rows.clear()
            slot.fold(tensor)
            rows.collect()
            start = turn % step
            sampled = seen[start::step][: n // step]
            expected, bins, _ = reference_row(tensor, sampled=sampled)
            assert np.array_equal(rows.histograms[0], bins)
            assert_close(rows.matrix[0], expected, 1e-6)
            assert len(sampled) <= limit
            if turn > 5:
                break


def test_folding_many_tensors_is_folding_their_concatenation():
    parts = [make(torch.float32, (n,), n, odd=True) for n in (1, 0, 300, 4000, 17)]
    rows = Rows(1, limit=2**62)
    slot = rows.slot(0, unit_dim=0)
    rows_whole = Rows(1, limit=2**62)
    for part in parts:
        rows.slot(0).fold(part)
    rows.collect()
    rows_whole.slot(0).fold(torch.cat(parts))
    rows_whole.collect()
    expected = rows_whole.matrix[0].copy()
    expected[0] = len(parts)
    assert_close(rows.matrix[0], expected, 1e-12)
    assert np.array_equal(rows.histograms, rows_whole.histograms)
    assert slot.bits is None


def test_unaligned_memory_is_read_right():
    raw = bytearray(4 * 1000 + 1)
    x = torch.frombuffer(raw, dtype=torch.float32, offset=1, count=1000)
    x.copy_(make(torch.float32, (1000,), 5, odd=True))
    assert x.data_ptr() % 4
    check(x)
    y = torch.frombuffer(bytearray(2 * 1000 + 1), dtype=torch.float16, offset=1, count=1000)
    y.copy_(make(torch.float16, (1000,), 5, odd=True))
    check(y)


def test_parameters_and_inference_tensors():
    check(torch.nn.Parameter(make(torch.float32, (30, 20), 1, odd=True)), unit_dim=0)
    with torch.inference_mode():
        x = torch.randn(30)
    check(x)
    check(torch.randn(4, requires_grad=True) * 2)


def test_a_float8_tensor_goes_through_torch():
    x = torch.randn(100).to(torch.float8_e4m3fn)
    row, histogram, _ = fold(x)
    expected, bins, _ = reference_row(x.to(torch.float32))
    assert_close(row, expected, 1e-6)
    assert np.array_equal(histogram, bins)


def test_the_number_of_units_may_change():
    rows = Rows(1)
    slot = rows.slot(0, unit_dim=-1)
    slot.fold(torch.tensor([[0.0, 1.0]]))
    slot.fold(torch.tensor([[0.0, 0.0, 0.0]]))
    slot.fold(torch.tensor(1.0))  # has no dimension: no units in it
    rows.collect()
    assert slot.bits.tolist() == [0, 1, 0]
    assert rows.matrix[0, 16] == 3
    assert rows.matrix[0, 17] == 1


def test_torch_rows_merge_like_numpy_rows(kernel):
    from nethook.stats.fields import merge_rows

    pairs = [make(torch.float64, (50,), seed, odd=True) for seed in (1, 2)]
    pairs.append(torch.empty(0, dtype=torch.float64))
    fresh = [
        torch_kernel.measure(torch_kernel.read_once(x), torch.float64, (0.0, 1.0)) for x in pairs
    ]
    for a in fresh:
        for b in fresh:
            merged = a.clone()
            torch_kernel.merge_(merged, b)
            assert np.array_equal(merged.numpy(), merge_rows(a.numpy(), b.numpy()))


def test_a_window_ends_with_empty_rows_and_the_next_reads_other_elements(kernel):
    rows = Rows(2, limit=4)
    slot = rows.slot(0, unit_dim=0)
    slot.fold(torch.arange(1.0, 65.0))
    rows.collect()
    first = rows.histograms[0].copy()
    rows.clear()
    assert np.array_equal(rows.matrix, Rows(2).matrix)
    assert not rows.histograms.any()
    assert not slot.bits.any()
    slot.fold(torch.arange(1.0, 65.0))
    rows.collect()
    # The step through a large tensor goes on where it was.
    assert rows.histograms[0].sum() == first.sum()
    assert not np.array_equal(rows.histograms[0], first)


def test_a_slot_writes_its_own_row_alone(kernel):
    rows = Rows(3)
    rows.slot(1).fold(torch.ones(5))
    rows.collect()
    assert rows.matrix[:, FIELDS.index("count")].tolist() == [0, 5, 0]
    assert rows.histograms.sum(axis=1).tolist() == [0, 5, 0]


def test_a_slot_without_a_histogram_counts_no_bins(kernel):
    rows = Rows(1)
    rows.slot(0, histogram=False).fold(torch.ones(5))
    rows.collect()
    assert not rows.histograms.any()
    assert rows.matrix[0, FIELDS.index("binned")] == 0
    assert rows.matrix[0, FIELDS.index("count")] == 5


def test_numbers_are_folded_each_into_its_row(kernel):
    rows = Rows(4)
    rows.fold_numbers([3, 0, 1], torch.tensor([2.0, math.nan, math.inf]))
    rows.fold_numbers([3, 0, 1], torch.tensor([4.0, 1.0, 0.0]))
    rows.collect()
    columns = {name: rows.matrix[:, FIELDS.index(name)].tolist() for name in FIELDS}
    assert columns["count"] == [1, 2, 0, 2]  # a NaN is a number that is not there
    assert columns["posinf"] == [0, 1, 0, 0]
    assert columns["mean"] == [1, 0, 0, 3]
    assert columns["max"][3] == 4


def test_ends_of_bounds_are_three_percent_of_their_distance(kernel):
    assert near_ends((0.0, 1.0)) == (0.03, 0.97)
    assert near_ends((-1.0, 1.0)) == pytest.approx((-0.94, 0.94))
    for bounds in ((1.0, 1.0), (1.0, 0.0), (math.nan, 1.0)):
        with pytest.raises(OptionError, match=r"`bounds` must be .* low < high; got \("):
            near_ends(bounds)
