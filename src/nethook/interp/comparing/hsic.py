"""The unbiased HSIC of Song et al. (2012), of all pairs at once.

A Gram matrix without its diagonal is U-centred; HSIC_1 of two is then their inner product, divided
by n (n - 3). So all pairs of layers are one product of matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

LEAST = 4
"""Rows that the estimate needs."""


def centred_gram(values: torch.Tensor) -> torch.Tensor:
    """The Gram matrix of rows (n, features), U-centred, flat; in float64."""
    x = values.double()
    gram = (x - x.mean(0)) @ (x - x.mean(0)).T  # the mean makes no difference but to rounding
    n = len(gram)
    gram.fill_diagonal_(0)
    sums = gram.sum(0) / (n - 2)
    total = sums.sum() / (n - 1)
    gram = gram - sums[:, None] - sums + total
    gram.fill_diagonal_(0)
    return gram.flatten()


def hsic(one: Sequence[torch.Tensor], two: Sequence[torch.Tensor]) -> torch.Tensor:
    """HSIC_1 of every centred Gram matrix of one list with every one of another."""
    a, b = torch.stack(list(one)), torch.stack(list(two))
    n = round(a.shape[1] ** 0.5)
    found: torch.Tensor = a @ b.T / (n * (n - 3))
    return found
