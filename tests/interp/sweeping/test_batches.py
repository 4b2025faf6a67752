"""Copies of a batch: where rows are, found by running twice as many."""

import torch

from nethook.addresses.inputs import Inputs
from nethook.interp.sweeping.batches import (
    Repeated,
    beside,
    beside_another,
    close,
    repeated_inputs,
    row_dims,
    split_cells,
)


def test_inputs_are_repeated_where_they_have_rows():
    inputs = Inputs((torch.arange(6).reshape(2, 3),), {"mask": torch.ones(3), "n": 4})
    three = repeated_inputs(inputs, 2, 0, 3)
    assert three.args[0].tolist() == [[0, 1, 2], [3, 4, 5]] * 3
    assert three.kwargs["mask"] is inputs.kwargs["mask"]
    assert three.kwargs["n"] == 4
    beside = beside_another(inputs, 2, 0)
    assert beside.args[0].tolist() == [
        [2, 1, 0],
        [5, 4, 3],
        [0, 1, 2],
        [3, 4, 5],
        [2, 1, 0],
        [5, 4, 3],
    ]


def test_others_stand_beside_inputs_only_where_no_more_than_rows_differ():
    x, y, mask = torch.zeros(2, 3), torch.ones(2, 3), torch.ones(3)
    both = beside(Inputs((x,), {"mask": mask}), Inputs((y,), {"mask": mask.clone()}), 2, 0)
    assert both.args[0].tolist() == [*y.tolist(), *x.tolist(), *y.tolist()]
    assert both.kwargs["mask"] is mask
    assert beside(Inputs((x,)), Inputs((y,)), 3, 1).args[0].shape == (2, 9)
    for one, other in (
        (Inputs((x,)), Inputs((y[:, :2],))),
        (Inputs((x,)), Inputs((y.double(),))),
        (Inputs((x,)), Inputs((), {"x": y})),
        (Inputs((x,), {"mask": mask}), Inputs((y,), {"mask": 2 * mask})),
        (Inputs((x,), {"a": True}), Inputs((y,), {"a": 1})),
        (Inputs((x,), {"a": True}), Inputs((y,), {"b": True})),
        (Inputs((x,), {"a": object()}), Inputs((y,), {"a": object()})),
    ):
        assert beside(one, other, 2, 0) is None


def test_the_dimension_that_grows_with_the_copies_counts_rows():
    one = {"a": torch.ones(2, 3), "b": (torch.ones(4, 2), torch.ones(5))}
    two = {"a": torch.ones(6, 3), "b": (torch.ones(4, 6), torch.ones(5))}
    assert row_dims(one, two) == (0, 1, None)
    assert row_dims(torch.ones(2, 2), torch.ones(6, 6)) is None
    assert row_dims(torch.ones(2), torch.ones(4)) is None
    assert row_dims(torch.ones(2), torch.ones(2, 2)) is None
    assert row_dims(torch.ones(2), (torch.ones(2), torch.ones(2))) is None


def test_the_part_of_a_cell():
    value = {"a": torch.arange(6).reshape(6, 1), "b": torch.arange(5)}
    part = split_cells(value, (0, None), 1, 2)
    assert part["a"].flatten().tolist() == [2, 3]
    assert part["b"] is value["b"]


def test_what_was_written_to_is_made_again():
    kept = Repeated(torch.tensor([[1.0], [2.0]]), (0,))
    given = kept.of(2)
    assert given.flatten().tolist() == [1, 2, 1, 2]
    assert kept.of(2) is given
    given.zero_()
    assert kept.of(2).flatten().tolist() == [1, 2, 1, 2]
    kept.of(1).zero_()
    assert kept.of(1).flatten().tolist() == [1, 2]


def test_noise_of_kernels_is_no_difference():
    one = torch.tensor([1.0, -3.0])
    assert close(one, one + 1e-6)
    assert not close(one, one + 1e-2)
    assert not close(one, one[:1])
