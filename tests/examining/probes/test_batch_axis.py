"""Samples of a batch, and how one takes the place of others."""

from __future__ import annotations

import torch

from nethook.addresses.inputs import Inputs
from nethook.examining.probes.batch_axis import BatchAxis, first_middle_last, tensors_of


def given(inputs: Inputs) -> list[torch.Tensor]:
    return [tensor for _, tensor in tensors_of(inputs)]


def test_others_are_replaced_by_one() -> None:
    x = torch.arange(12.0).view(4, 3)
    inputs = Inputs((x,), {"mask": torch.arange(4.0)})
    axis = BatchAxis.of(inputs, 0, 4)
    rows, mask = given(axis.only(inputs, keep=1, by=2))
    assert rows.tolist() == x[[2, 1, 2, 2]].tolist()
    assert mask.tolist() == [2, 1, 2, 2]
    rows, mask = given(axis.swapped(inputs, change=1, by=2))
    assert rows.tolist() == x[[0, 2, 2, 3]].tolist()
    assert x.tolist() == torch.arange(12.0).view(4, 3).tolist()


def test_lengths_stay_where_they_are() -> None:
    inputs = Inputs((torch.randn(4, 3), torch.tensor([9, 7, 5, 2])))
    axis = BatchAxis.of(inputs, 0, 4)
    assert axis.dims == {0: 0}
    assert given(axis.only(inputs, keep=0, by=1))[1].tolist() == [9, 7, 5, 2]


def test_states_of_an_rnn_have_samples_in_the_middle() -> None:
    inputs = Inputs((torch.randn(4, 7, 3), torch.randn(2, 4, 5)))
    assert BatchAxis.of(inputs, 0, 4).dims == {0: 0, 1: 1}
    later = Inputs((torch.randn(7, 4, 3), torch.randn(2, 4, 5)))
    assert BatchAxis.of(later, 1, 4).dims == {0: 1, 1: 1}


def test_a_sample_that_differs() -> None:
    x = torch.zeros(4, 2)
    inputs = Inputs((x,))
    axis = BatchAxis.of(inputs, 0, 4)
    assert axis.another(inputs, 0) is None
    x[3] = 1
    assert axis.another(inputs, 0) == 3
    assert axis.another(inputs, 3) == 0


def test_which_samples_are_tried() -> None:
    assert first_middle_last(9) == (0, 4, 8)
    assert first_middle_last(2) == (0, 1)
