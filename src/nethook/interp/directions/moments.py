"""Sums over rows from which means, covariances and ridge regressions follow, per fold."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from nethook.interp.directions.samples import Samples


@dataclass(frozen=True)
class Moments:
    """Sums over rows of x, y, x xᵀ, x yᵀ and y², about a shift; they add and subtract."""

    count: float
    x: torch.Tensor  # (features,)
    y: torch.Tensor  # (targets,)
    xx: torch.Tensor  # (features, features)
    xy: torch.Tensor  # (features, targets)
    yy: torch.Tensor  # (targets,)
    shift: torch.Tensor  # (features,), taken off x first: digits are not lost to a large mean

    def __sub__(self, other: Moments) -> Moments:
        return Moments(
            self.count - other.count, self.x - other.x, self.y - other.y, self.xx - other.xx,
            self.xy - other.xy, self.yy - other.yy, self.shift,
        )  # fmt: skip

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.count + other.count, self.x + other.x, self.y + other.y, self.xx + other.xx,
            self.xy + other.xy, self.yy + other.yy, self.shift,
        )  # fmt: skip

    @property
    def mean(self) -> torch.Tensor:
        """The mean of x."""
        return self.shift + self.x / self.count

    @property
    def covariance(self) -> torch.Tensor:
        """Σ_xx, divided by the number of rows."""
        mean = self.x / self.count
        return self.xx / self.count - mean[:, None] * mean

    @property
    def cross_covariance(self) -> torch.Tensor:
        """Σ_xy, divided by the number of rows."""
        return self.xy / self.count - (self.x / self.count)[:, None] * (self.y / self.count)


def moments(
    samples: Samples, targets: torch.Tensor, folds: torch.Tensor, count: int
) -> list[Moments]:
    """The sums of each fold, in two passes: one for the mean, one for the products."""
    width, outputs = samples.width, targets.shape[1]
    total = torch.zeros(width + 1, dtype=torch.double)
    for _, chunk in samples.chunks():
        total += torch.cat([chunk.sum(0), torch.tensor([len(chunk)]).double()])
    total = samples.total(total)
    shift = total[:-1] / total[-1]
    sizes = (1, width, outputs, width * width, width * outputs, outputs)
    sums = torch.zeros(count, sum(sizes), dtype=torch.double)
    for rows, chunk in samples.chunks():
        for fold in range(count):
            there = folds[rows] == fold
            x, y = chunk[there] - shift, targets[rows][there]
            parts = [torch.tensor([float(len(x))]).double(), x.sum(0), y.sum(0),
                     (x.T @ x).flatten(), (x.T @ y).flatten(), y.square().sum(0)]  # fmt: skip
            sums[fold] += torch.cat(parts)
    found = []
    for row in samples.total(sums):
        number, x, y, xx, xy, yy = row.split(sizes)
        found.append(
            Moments(float(number), x, y, xx.view(width, width), xy.view(width, outputs), yy, shift)
        )
    return found
