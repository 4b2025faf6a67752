"""Copies that cost memory only when one of the two is written to."""

import pytest
import torch

from nethook.hooks.lazy import cheap_copy, lazy_copy


def address(tensor: torch.Tensor) -> int:
    return torch._C._data_address(tensor)


def test_a_lazy_copy_shares_memory_until_a_write():
    tensor = torch.arange(3.0)
    copied = lazy_copy(tensor)
    assert address(copied) == address(tensor)
    tensor.add_(1)
    assert torch.equal(copied, torch.arange(3.0))


def test_memory_that_numpy_shares_is_copied_at_once():
    tensor = torch.zeros(3)
    array = tensor.numpy()
    copied = lazy_copy(tensor)
    tensor.add_(1)
    assert array.tolist() == [1, 1, 1]
    assert copied.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "make", [lambda: torch.eye(2).to_sparse(), lambda: torch.ones(3).share_memory_()]
)
def test_where_torch_has_no_lazy_copy_a_true_one_is_made(make):
    tensor = make()
    assert lazy_copy(tensor) is None
    copied = cheap_copy(tensor)
    tensor.mul_(2)
    assert not torch.equal(copied.to_dense(), tensor.to_dense())
