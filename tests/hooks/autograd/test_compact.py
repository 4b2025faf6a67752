"""Copies cost what memory costs, and are equal to torch's own."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nethook.hooks.autograd.compact import compact_clone, compactly, stored
from nethook.hooks.autograd.lazy_copy import cheap_copy


def _shown(sizes: list[int], strides: list[int], dtype: torch.dtype) -> torch.Tensor:
    span = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    memory = torch.arange(max(span, 1) + 3).to(dtype)
    return memory.as_strided(sizes, strides, 2)


dims = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), max_size=4)


@given(dims, st.sampled_from([torch.float32, torch.int64, torch.complex64, torch.bool]))
def test_equals_clone(dims: list[tuple[int, int]], dtype: torch.dtype) -> None:
    tensor = _shown([size for size, _ in dims], [stride for _, stride in dims], dtype)
    copied = compact_clone(tensor)
    assert torch.equal(copied, tensor)
    assert copied.shape == tensor.shape
    if tensor.numel():
        assert copied.data_ptr() != tensor.data_ptr()
        assert copied.untyped_storage().nbytes() <= tensor.numel() * tensor.element_size()
    converted = compactly(lambda each: each.to(torch.complex128), tensor)
    assert torch.equal(converted, tensor.to(torch.complex128))


def test_conversion_that_changes_nothing_gives_the_same_elements() -> None:
    windows = torch.arange(9.0)[2:].unfold(0, 4, 1)
    assert torch.equal(compactly(lambda each: each.to(torch.float32), windows), windows)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_huge_expansions_cost_one_element(requires_grad: bool) -> None:
    huge = torch.ones(1, requires_grad=requires_grad).expand(2**40)
    for copied in (compact_clone(huge), cheap_copy(huge), cheap_copy(huge, detach=True)):
        assert copied.shape == (2**40,)
        assert copied.untyped_storage().nbytes() <= 64


@pytest.mark.filterwarnings("ignore")
def test_layouts_without_strides_are_cloned() -> None:
    dense = torch.eye(3)
    for odd in (dense.to_sparse(), dense.to_sparse_csr(), dense.to_mkldnn()):
        assert torch.equal(compact_clone(odd).to_dense(), dense)
    nested = torch.nested.nested_tensor([dense, dense[:1]])
    assert torch.equal(compact_clone(nested)[1], dense[:1])


def test_gradients_flow_through_copies() -> None:
    for show in (lambda x: x[:1].expand(7, 4), lambda x: x.flatten().unfold(0, 6, 1)):
        x = torch.arange(8.0).reshape(2, 4).requires_grad_()
        weights = torch.randn_like(show(x))
        (wanted,) = torch.autograd.grad((show(x) * weights).sum(), x)
        (found,) = torch.autograd.grad((compact_clone(show(x)) * weights).sum(), x)
        torch.testing.assert_close(found, wanted)


def test_memory_of_overlapping_windows_can_be_written() -> None:
    x = torch.arange(10.0)
    stored(x.unfold(0, 6, 1)).fill_(3)
    assert x.eq(3).all()
    y = torch.arange(3.0)
    stored(y[1:2].expand(5)).fill_(7)
    assert y.tolist() == [0, 7, 2]
