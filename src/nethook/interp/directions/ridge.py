"""Ridge regression from sums alone: every penalty from one decomposition.

The penalty is `penalty * |weights|²` beside the sum of squares; biases have none. That is
scikit-learn's `Ridge(alpha=penalty)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nethook.interp.directions.logistic import Linear
from nethook.interp.directions.moments import Moments


def fit_ridge(sums: Moments, penalties: Sequence[float]) -> list[Linear]:
    """The solution of (X'X + penalty I) w = X'y, both centred, for each penalty."""
    mean_x, mean_y = sums.x / sums.count, sums.y / sums.count
    values, vectors = torch.linalg.eigh(sums.covariance * sums.count)
    turned = vectors.T @ (sums.cross_covariance * sums.count)
    floor = 1e-12 * float(values.abs().max())
    found = []
    for penalty in penalties:
        size = values.clamp(min=0) + penalty
        inverse = torch.where(size > floor, 1 / size.clamp(min=floor), 0.0)
        weights = (vectors @ (inverse[:, None] * turned)).T
        found.append(Linear(weights, mean_y - weights @ (mean_x + sums.shift)))
    return found
