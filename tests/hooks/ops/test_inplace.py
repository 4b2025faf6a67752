"""A changed value is put where an operation has written its own, or refused at once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nethook.errors import EditError
from nethook.hooks.ops.inplace import put_back

ADDRESS = "fc/add#0"


def test_what_was_not_written_to_is_replaced() -> None:
    old, new = torch.ones(2), torch.zeros(2)
    assert put_back(old, new, [], ADDRESS) is new
    assert put_back(old, new, [torch.ones(2)], ADDRESS) is new
    assert put_back(old, "text", [torch.ones(2)], ADDRESS) == "text"
    assert torch.equal(old, torch.ones(2))


def test_what_was_written_to_is_written_again() -> None:
    old, new = torch.ones(2), torch.zeros(2)
    assert put_back(old, new, [torch.ones(3), old], ADDRESS) is old
    assert torch.equal(old, torch.zeros(2))
    assert put_back(old, old, [old], ADDRESS) is old


def test_of_several_only_those_that_were_written_to() -> None:
    one, other = torch.ones(2), torch.ones(3)
    new = (torch.zeros(2), {"a": torch.zeros(3)})
    found = put_back((one, {"a": other}), new, [other], ADDRESS)
    assert found[0] is new[0]
    assert found[1]["a"] is other
    assert torch.equal(one, torch.ones(2))
    assert torch.equal(other, torch.zeros(3))


def test_autograd_follows_what_was_written() -> None:
    x = torch.ones(2, requires_grad=True)
    target = x * 1
    new = x * 3
    put_back(target, new, [target], ADDRESS)
    (target * torch.tensor([1.0, 10.0])).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.tensor([3.0, 30.0]))


@pytest.mark.parametrize("new", [(), (torch.zeros(2), torch.zeros(2)), "text"])
def test_another_form_is_refused(new: object) -> None:
    old = torch.ones(2)
    count = len(new) if isinstance(new, tuple) else 0
    text = rf"'fc/add#0' writes .* with 1 tensors in it; it returned \w+ with {count}\."
    with pytest.raises(EditError, match=text):
        put_back(old, new, [old], ADDRESS)
    assert torch.equal(old, torch.ones(2))


@pytest.mark.parametrize(
    "new", [torch.zeros(3), torch.zeros(2, dtype=torch.float64), torch.zeros(1, 2)]
)
def test_another_shape_or_type_is_refused(new: Tensor) -> None:
    old = torch.ones(2)
    with pytest.raises(EditError, match=r"'fc/add#0' .* its shape \(2,\) and type torch\.float32"):
        put_back(old, new, [old], ADDRESS)


def test_what_autograd_keeps_is_refused_while_gradients_are_on() -> None:
    target = torch.ones(2, requires_grad=True).exp()  # its formula needs its result
    with pytest.raises(EditError, match=r"'fc/add#0' .* keeps its result .*\(ExpBackward0\)"):
        put_back(target, torch.zeros(2), [target], ADDRESS)
    part = target[:1]  # the same memory, and nothing of it is kept by its own node
    put_back(part.detach(), torch.ones(1), [part], ADDRESS)
    with torch.no_grad():
        put_back(target, torch.zeros(2), [target], ADDRESS)
    assert torch.equal(target, torch.zeros(2))


def test_what_autograd_keeps_of_others_is_no_reason() -> None:
    x = torch.ones(2, requires_grad=True)
    target = x * torch.full((2,), 2.0)  # keeps the factor
    put_back(target, torch.zeros(2), [target], ADDRESS)
    assert torch.equal(target, torch.zeros(2))


def test_a_leaf_is_refused_while_gradients_are_on() -> None:
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(EditError, match=r"'fc/add#0' writes in place into a leaf"):
        put_back(leaf, torch.zeros(2), [leaf], ADDRESS)
    with torch.no_grad():
        put_back(leaf, torch.zeros(2), [leaf], ADDRESS)
    assert torch.equal(leaf, torch.zeros(2))
    plain = torch.ones(2)
    put_back(plain, torch.zeros(2), [plain], ADDRESS)
    assert torch.equal(plain, torch.zeros(2))


def test_sparse_tensors_are_written_to_as_well() -> None:
    dense = torch.eye(2, requires_grad=True)
    target = dense.to_sparse() * 1
    new = (torch.eye(2) * 3).to_sparse()
    put_back(target, new, [target], ADDRESS)
    assert torch.equal(target.to_dense(), torch.eye(2) * 3)
