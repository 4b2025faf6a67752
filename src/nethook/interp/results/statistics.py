"""Means over rows with their uncertainty: Student's t interval."""

from __future__ import annotations

import math
from functools import cache

import torch


def mean_over_rows(values: torch.Tensor) -> torch.Tensor:
    """The mean over the last dimension, of what is not NaN; NaN where there is nothing."""
    return values.double().nanmean(-1)


def interval_over_rows(
    values: torch.Tensor, confidence: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The t interval of the mean over the last dimension: low and high; NaN for fewer than two."""
    values = values.double()
    mean = mean_over_rows(values)
    there = ~values.isnan()
    count = there.sum(-1)
    squares = torch.where(there, values - mean[..., None], 0.0).square().sum(-1)
    error = (squares / (count - 1) / count).sqrt()  # 0 / 0 is NaN: one row has no interval
    quantiles = {n: t_quantile(n - 1, confidence) for n in set(count.flatten().tolist()) if n > 1}
    factor = torch.full_like(mean, math.nan)
    for n, quantile in quantiles.items():
        factor[count == n] = quantile
    return mean - factor * error, mean + factor * error


@cache
def t_quantile(freedom: int, confidence: float) -> float:
    """The t of so many degrees of freedom between -t and t of which this share lies."""
    low, high = 0.0, math.pi / 2
    for _ in range(100):
        middle = (low + high) / 2
        if _share_within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return math.tan((low + high) / 2) * math.sqrt(freedom)


def _share_within(angle: float, freedom: int) -> float:
    """P(|T| < t) for t = sqrt(freedom) * tan(angle), a finite sum (Abramowitz, Stegun 26.7.3)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    if freedom % 2:
        term = total = cosine if freedom > 1 else 0.0
        for k in range(3, freedom - 1, 2):
            term *= cosine * cosine * (k - 1) / k
            total += term
        return 2 / math.pi * (angle + sine * total)
    term = total = 1.0
    for k in range(2, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return sine * total
