"""Copies that cost memory only when one of the two is written to."""

import numpy as np
import pytest
import torch

from nethook.hooks.autograd.lazy_copy import cheap_copy, lazy_copy


def address(tensor: torch.Tensor) -> int:
    return torch._C._data_address(tensor)


def test_a_lazy_copy_shares_memory_until_a_write():
    tensor = torch.arange(3.0)
    copied = lazy_copy(tensor)
    assert address(copied) == address(tensor)
    tensor.add_(1)
    assert torch.equal(copied, torch.arange(3.0))


def numpy_of_a_tensor():
    tensor = torch.zeros(3)
    return tensor, tensor.numpy()


def tensor_of_a_numpy_array():
    array = np.zeros(3)
    return torch.from_numpy(array), array


@pytest.mark.parametrize("make", [numpy_of_a_tensor, tensor_of_a_numpy_array])
def test_memory_that_numpy_shares_is_copied_at_once(make):
    tensor, array = make()
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


def saved_by_backward() -> torch.Tensor:
    return torch.relu(torch.ones(3, requires_grad=True))


def linear_on_three_dimensions() -> torch.Tensor:
    return torch.nn.Linear(4, 4)(torch.ones(2, 3, 4))


def shaped_without_gradient() -> torch.Tensor:
    return (torch.ones(2, 3) * 2).view(-1)


def parameter_in_a_graph() -> torch.Tensor:
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.graph = parameter * parameter  # saves it, and has its gradient accumulated
    return parameter


def view_of_what_backward_needs() -> torch.Tensor:
    base = torch.ones(2, 3, requires_grad=True) * 2
    view = base.view(-1)
    view.graph = base * base
    return view


@pytest.mark.parametrize(
    "make",
    [
        saved_by_backward,
        linear_on_three_dimensions,
        shaped_without_gradient,
        parameter_in_a_graph,
        view_of_what_backward_needs,
    ],
)
def test_owners_that_torch_itself_has_do_not_make_a_copy_dear(make):
    tensor = make()
    assert address(lazy_copy(tensor)) == address(tensor)


def exported(make):
    """A tensor, and what another library holds of its memory."""
    tensor = make()
    return tensor, np.from_dlpack(tensor.detach())


def exported_itself():
    tensor = torch.ones(3)
    return tensor, np.from_dlpack(tensor)


def exported_base():
    base = torch.ones(2, 3)
    return base.view(-1), np.from_dlpack(base)


@pytest.mark.parametrize(
    "make",
    [
        exported_itself,
        exported_base,
        lambda: exported(saved_by_backward),
        lambda: exported(linear_on_three_dimensions),
        lambda: exported(lambda: torch.ones(3, requires_grad=True) * 2),
        lambda: exported(lambda: torch.ones(3)),
    ],
)
def test_memory_that_another_library_holds_is_copied_at_once(make):
    tensor, alias = make()
    copied = lazy_copy(tensor)
    assert address(copied) != address(tensor)
    with torch.no_grad():
        tensor.add_(1)
    assert alias.ravel().tolist() == tensor.detach().ravel().tolist()
    assert not torch.equal(copied, tensor)


def test_what_backward_saves_elsewhere_is_no_excuse_for_an_owner():
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        tensor, alias = exported(saved_by_backward)
        copied = lazy_copy(tensor)
    assert address(copied) != address(tensor)
    assert alias.tolist() == copied.tolist()


def test_memory_that_goes_out_after_a_lazy_copy_stays_whole():
    tensor = torch.ones(3)
    copied = lazy_copy(tensor)
    alias = np.from_dlpack(tensor)
    tensor.add_(1)
    assert alias.tolist() == [2, 2, 2]
    assert copied.tolist() == [1, 1, 1]


def test_a_copy_is_outside_the_graph_unless_it_is_asked_for():
    tensor = torch.ones(3, requires_grad=True) * 2
    assert not lazy_copy(tensor).requires_grad
    assert lazy_copy(tensor, detach=False).requires_grad
    for each in (tensor, tensor.to_sparse()):
        assert not cheap_copy(each, detach=True).requires_grad
        assert cheap_copy(each).requires_grad


def test_a_cheap_copy_is_a_lazy_one_where_torch_has_it():
    tensor = torch.ones(3)
    assert address(cheap_copy(tensor)) == address(tensor)


@pytest.mark.filterwarnings("ignore:.*quantize.*")  # torch is about to move quantised tensors out
def test_a_quantised_tensor_is_copied_at_once():
    tensor = torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8)
    copied = lazy_copy(tensor)
    assert address(copied) != address(tensor)
    assert copied.dequantize().tolist() == [1, 1, 1]
