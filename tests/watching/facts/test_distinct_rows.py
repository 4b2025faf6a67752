"""How many rows of a weight, or of its gradient, differ."""

from __future__ import annotations

import math

import pytest
import torch

from nethook.watching.facts.facts import distinct_rows


@pytest.mark.parametrize(
    ("matrix", "count"),
    [
        (torch.ones(5, 3), 1),
        (torch.zeros(5, 3), 1),
        (torch.eye(5), 5),
        (torch.tensor([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]]), 2),
        (torch.full((5, 3), math.nan), 5),  # what is no number is not the same
        (torch.full((5, 3), math.inf), 5),
    ],
)
def test_rows_that_differ(matrix: torch.Tensor, count: int) -> None:
    assert int(distinct_rows(matrix, 1e-13)) == count
