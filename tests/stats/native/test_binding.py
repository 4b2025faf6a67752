"""What the kernel is told of a tensor that it asks by itself, and of which it asks nothing."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.stats.native import binding, readable
from tests.stats.native.tensors import DENSE, OTHERS

pytestmark = [
    pytest.mark.skipif(binding.functions is None, reason="the native kernel was not built here"),
    pytest.mark.filterwarnings("ignore:.*quantize_per_:UserWarning"),
]

TYPES = tuple(binding.CODES)
describe = getattr(binding.functions, "describe", None)


def as_torch_says(tensor):
    """What the kernel has to say of a plain tensor."""
    return (
        binding.CODES[tensor.dtype],
        torch._C._data_address(tensor) + tensor.storage_offset() * tensor.element_size(),
        tensor.numel(),
        list(tensor.shape),
        list(tensor.stride()),
    )


@pytest.mark.parametrize("name", DENSE)
def test_dense_tensors_are_described_as_torch_says(name):
    tensor = DENSE[name]
    found = describe(tensor)
    if not readable.is_plain(tensor) or tensor.dtype not in binding.CODES:
        assert found is None
    else:
        assert found == as_torch_says(tensor)


@pytest.mark.parametrize("name", OTHERS)
def test_no_other_tensor_is_described(name, capfd):
    assert describe(OTHERS[name][0]) is None
    assert capfd.readouterr().err == ""


def test_wrappers_of_transforms_are_not_described(capfd):
    seen = []

    def look(x):
        seen.append(describe(x))
        return (x * x).sum()

    x = torch.randn(3, 4)
    torch.func.vmap(look)(x)
    torch.func.grad(look)(x)
    torch.func.vmap(torch.func.grad(look))(x)
    torch.func.functionalize(look)(x)
    assert seen == [None] * 4
    assert capfd.readouterr().err == ""


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_view_is_described_as_torch_says(data):
    dtype = data.draw(st.sampled_from(TYPES))
    sizes = data.draw(st.lists(st.integers(1, 5), max_size=5))
    tensor = torch.zeros(5**5 * 16, dtype=torch.uint8).view(dtype)
    strides = data.draw(st.lists(st.integers(0, 40), min_size=len(sizes), max_size=len(sizes)))
    offset = data.draw(st.integers(0, 50))
    tensor = tensor.as_strided(sizes, strides, offset)
    if data.draw(st.booleans()) and (dtype.is_floating_point or dtype.is_complex):
        tensor = torch.nn.Parameter(tensor)
    assert describe(tensor) == as_torch_says(tensor)
    assert describe(tensor)[3:] == (sizes, strides)


def test_asking_does_not_make_a_lazy_copy_real():
    lazy = torch._lazy_clone(torch.randn(3))
    assert describe(lazy) == as_torch_says(lazy)
    assert torch._C._is_cow_tensor(lazy)


def test_a_number_is_read_where_it_is_one():
    for dtype in (torch.float32, torch.float64):
        assert binding.number_of(torch.tensor(2.5, dtype=dtype)) == 2.5
        assert binding.number_of(torch.tensor([1.0, 2.5], dtype=dtype)[1]) == 2.5
    assert math.isnan(binding.number_of(torch.tensor(math.nan)))
    assert binding.number_of(torch.tensor(2.5, requires_grad=True) * 2) == 5.0
    for other in (
        torch.tensor([2.5]),
        torch.tensor(2),
        torch.tensor(2.5, dtype=torch.bfloat16),
        torch.tensor(2.5, device="meta"),
        torch._neg_view(torch.tensor(2.5)),
        torch.tensor(2.5).to_sparse(),
    ):
        assert binding.number_of(other) is None


def test_the_bytes_of_a_tensor():
    assert binding.bytes_of(torch.zeros(3, 4)) == 48
    assert binding.bytes_of(torch.zeros(3, 4, dtype=torch.float64)[:, 0]) == 24
    assert binding.bytes_of(torch.zeros(0)) == 0
    assert binding.bytes_of(torch.zeros(3, device="meta")) == -1
    assert binding.bytes_of(torch.zeros(3).to_sparse()) == -1
