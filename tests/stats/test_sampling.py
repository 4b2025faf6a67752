"""A few elements of a tensor, against what indexing all of it gives."""

from __future__ import annotations

import pytest
import torch

from nethook.stats.sampling import both_parts, digits, looked_up, sampled

VALUES = torch.arange(120.0).reshape(2, 3, 4, 5)
LAYOUTS = {
    "contiguous": VALUES,
    "transposed": VALUES.transpose(1, 3),
    "strided": VALUES[:, :, ::2, 1::2],
    "expanded": VALUES[:, :1].expand(2, 7, 4, 5),
    "overlapping": VALUES.reshape(-1).unfold(0, 10, 1),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("most", [1, 7, 60, 1000])
@pytest.mark.parametrize("dim", [0, 1])
def test_elements_are_those_at_every_step(name, most, dim):
    tensor = LAYOUTS[name]
    flat = tensor.reshape(*tensor.shape[:dim], -1)
    step = max(1, flat.shape[-1] // most)
    assert torch.equal(sampled(tensor, most, dim=dim), flat[..., ::step][..., :most])


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_step_that_is_asked_for(name):
    tensor = LAYOUTS[name]
    assert torch.equal(sampled(tensor, 4, step=9), tensor.reshape(-1)[::9][:4])


def test_a_number_has_one_element():
    assert sampled(torch.tensor(3.0), 5).tolist() == [3.0]
    assert sampled(VALUES[:, 0, 0, 0], 5, dim=1).tolist() == [[0.0], [60.0]]


def test_nothing_is_copied_of_a_tensor_that_is_expanded_beyond_memory():
    huge = torch.arange(3.0).reshape(1, 3).expand(2**40, 3)
    assert sampled(huge, 8).tolist() == [(index * (3 * 2**40 // 8)) % 3 for index in range(8)]


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.uint16, torch.float32, torch.int8])
def test_types_that_torch_cannot_index(dtype):
    tensor = torch.tensor([0, 1, 2, 4, 8]).to(dtype)
    wanted = torch.tensor([4, 1])
    chosen = looked_up(tensor, (torch.tensor([3, 1]),))
    assert chosen.dtype == dtype
    assert torch.equal(chosen.to(torch.int64), wanted)


def test_digits_are_what_unravel_index_gives():
    places = torch.arange(60)
    for mine, theirs in zip(
        digits(places, (3, 4, 5)), torch.unravel_index(places, (3, 4, 5)), strict=True
    ):
        assert torch.equal(mine, theirs)
    assert digits(torch.zeros(1, dtype=torch.int64), (0, 2))[0].tolist() == [0]


def test_complex_numbers_are_two_columns_each():
    matrix = torch.complex(torch.ones(2, 3), torch.full((2, 3), 2.0))
    assert both_parts(matrix.conj()).tolist() == [[1, -2] * 3] * 2
    real = torch.ones(2, 3)
    assert both_parts(real) is real
