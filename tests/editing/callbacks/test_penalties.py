"""Penalties: the terms of a loss, collected until they are taken."""

import pytest
import torch

from nethook.editing.callbacks.penalties import Penalty
from nethook.errors import EditError


def test_terms_add_up_with_their_weight_and_gradient():
    penalty = Penalty("relu*", lambda output: output.square().mean(), 0.5)
    values = [torch.tensor([1.0, 3.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)]
    for value in values:
        penalty(value, "relu")
    loss = penalty.take()
    assert loss.item() == pytest.approx(0.5 * (1 + 9) / 2 + 0.5 * 4)
    loss.backward()
    assert values[0].grad.tolist() == [0.5, 1.5]  # weight * 2x / n
    assert values[1].grad.tolist() == [2.0]


def test_what_was_taken_is_forgotten():
    penalty = Penalty("relu", lambda output: output.sum(), 1.0)
    penalty(torch.ones(2, requires_grad=True), "relu")
    assert penalty.take().item() == 2
    with pytest.raises(EditError, match=r"penalty\('relu'\) saw nothing since the last time"):
        penalty.take()


def test_the_site_is_passed_to_a_function_that_takes_it():
    seen = []
    penalty = Penalty("*", lambda output, site: (seen.append(site), output.sum())[1], 1.0)
    penalty(torch.ones(1, requires_grad=True), "fc1")
    assert seen == ["fc1"]


@pytest.mark.parametrize(
    ("value", "got"), [(3.0, "float"), (torch.ones(2), r"\(2,\)"), (None, "NoneType")]
)
def test_a_term_is_one_number_as_a_tensor(value, got):
    penalty = Penalty("fc1", lambda output: value, 1.0)
    with pytest.raises(EditError, match=rf"'fc1' must return one number as a tensor; got {got}"):
        penalty(torch.ones(1), "fc1")


def test_a_term_of_any_shape_with_one_element_counts():
    penalty = Penalty("fc1", lambda output: output.reshape(1, 1, 1), 2.0)
    penalty(torch.full((1,), 3.0, requires_grad=True), "fc1")
    assert penalty.take().shape == ()


def test_without_gradient_nothing_is_collected_and_that_is_said():
    penalty = Penalty("fc1", lambda output: output.sum(), 1.0)
    with torch.no_grad():
        penalty(torch.ones(1), "fc1")
    with pytest.raises(EditError, match="only without gradient"):
        penalty.take()
    penalty(torch.ones(1, requires_grad=True), "fc1")
    assert penalty.take().item() == 1
