"""Data in batches."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import nethook
from nethook.errors import InputsError, OptionError
from nethook.interp.batches import batches, count_of, some_rows


def test_one_batch_is_cut_into_pieces_and_what_has_no_rows_is_shared():
    x, bias = torch.arange(10.0).reshape(5, 2), torch.ones(2)
    cut = list(batches(nethook.inputs(x, bias=bias), rows=2))
    assert [len(each.args[0]) for each in cut] == [2, 2, 1]
    assert torch.equal(torch.cat([each.args[0] for each in cut]), x)
    assert all(each.kwargs["bias"] is bias for each in cut)
    assert count_of(x, rows=2) == 3
    assert torch.equal(some_rows(nethook.inputs(x), torch.tensor([4, 0]), 5).args[0], x[[4, 0]])


def test_a_loader_gives_its_inputs_without_labels():
    loader = DataLoader(TensorDataset(torch.randn(5, 2), torch.arange(5)), batch_size=2)
    assert [len(each.args[0]) for each in batches(loader)] == [2, 2, 1]
    assert count_of(loader) == 3
    assert count_of(each for each in loader) is None
    assert [sorted(each.kwargs) for each in batches([{"input_ids": torch.ones(1, 2)}])] == [
        ["input_ids"]
    ]


def test_what_is_no_data():
    with pytest.raises(OptionError, match="`data` must be inputs"):
        list(batches(3))
    with pytest.raises(InputsError, match="`data` must have at least one batch; got none"):
        list(batches([]))
    with pytest.raises(InputsError, match="must hold a tensor with rows"):
        list(batches(nethook.inputs(3)))
