"""The memory of tensors of every kind."""

from __future__ import annotations

import pytest
import torch

from nethook.stats.memory import bytes_held, pieces, sizes
from tests.zoo.odd_tensors import ODD

pytestmark = pytest.mark.filterwarnings("ignore:.*Sparse CSR:UserWarning")


def test_bytes_are_those_of_the_pieces():
    dense = torch.zeros(8, 4)
    dense[:2, :3] = 1  # six elements
    cases = {
        "dense": (dense, 128),
        "coo": (dense.to_sparse(), 6 * 4 + 2 * 6 * 8),
        "csr": (dense.to_sparse_csr(), 6 * 4 + 9 * 8 + 6 * 8),
        "csc": (dense.to_sparse_csc(), 6 * 4 + 5 * 8 + 6 * 8),
        "expanded": (dense[:1].expand(2**40, 4), 16),
        "overlapping": (dense.as_strided((5, 20), (1, 1)), 24 * 4),
        "a part": (dense[:, 0], 32),
        "empty": (dense[:0], 0),
        "meta": (torch.empty(8, 4, device="meta"), 0),
        "a number": (torch.tensor(1.0, dtype=torch.float64), 8),
        "lazy": (torch.nn.LazyLinear(3).weight, 0),
    }
    found = {name: bytes_held(tensor) for name, (tensor, _) in cases.items()}
    assert found == {name: size for name, (_, size) in cases.items()}


@pytest.mark.parametrize("kind", ODD)
def test_every_kind_has_pieces_and_a_size(kind):
    assert bytes_held(ODD[kind]) >= 0
    assert all(isinstance(each, torch.Tensor) for each in pieces(ODD[kind]))
    found = sizes(ODD[kind])
    assert found == ([ODD[kind].size(0)] if kind in ("nested", "jagged") else list(ODD[kind].shape))


def test_a_parameter_without_a_shape_has_no_sizes():
    assert sizes(torch.nn.LazyLinear(3).weight) is None
