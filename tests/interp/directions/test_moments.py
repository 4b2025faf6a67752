"""Sums of folds against the tensors themselves."""

import torch

from nethook.interp.directions import samples
from nethook.interp.directions.moments import moments
from nethook.interp.directions.samples import Samples


def test_means_and_covariances_of_every_union_of_folds(monkeypatch):
    monkeypatch.setattr(samples, "_NUMBERS", 20)
    torch.manual_seed(0)
    x = 1e4 + torch.randn(30, 4, dtype=torch.double)  # a mean far larger than the spread
    y = torch.randn(30, 2, dtype=torch.double)
    folds = torch.arange(30) % 3
    a, b, c = moments(Samples(x), y, folds, 3)
    total = a + b + c
    torch.testing.assert_close(total.mean, x.mean(0))
    torch.testing.assert_close(total.covariance, torch.cov(x.T, correction=0))
    rest = total - c
    there = folds != 2
    centred = x[there] - x[there].mean(0)
    torch.testing.assert_close(rest.mean, x[there].mean(0))
    torch.testing.assert_close(rest.cross_covariance, centred.T @ y[there] / 20)
    assert (rest.count, total.count) == (20, 30)
