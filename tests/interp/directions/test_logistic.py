"""Logistic regression against scikit-learn, by either search."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from nethook.errors import ResultError
from nethook.interp.directions import logistic, samples
from nethook.interp.directions.logistic import fit_logistic
from nethook.interp.directions.samples import Samples


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_coefficients_are_scikit_learns(classes, penalty, monkeypatch):
    monkeypatch.setattr(samples, "_NUMBERS", 64)
    torch.manual_seed(classes)
    scales = torch.logspace(-2, 2, 5, dtype=torch.double)  # features of very different sizes
    labels = torch.randint(0, classes, (90,))
    x = (torch.randn(90, 5, dtype=torch.double) + labels[:, None] * 0.7) * scales
    rows = torch.arange(90) % 3 != 0
    found = fit_logistic(Samples(x), labels, classes, penalty, rows)
    other = LogisticRegression(C=1 / penalty, tol=1e-12, max_iter=100_000, solver="newton-cg")
    other.fit(x[rows].numpy(), labels[rows].numpy())
    torch.testing.assert_close(found.weights, torch.tensor(other.coef_), rtol=1e-4, atol=1e-5)
    bias = torch.tensor(other.intercept_)
    if classes > 2:  # of which only differences matter
        bias, found_bias = bias - bias.mean(), found.bias - found.bias.mean()
    else:
        found_bias = found.bias
    torch.testing.assert_close(found_bias, bias, rtol=1e-3, atol=1e-3)


def test_both_searches_end_at_the_same_place(monkeypatch):
    torch.manual_seed(0)
    labels = torch.randint(0, 2, (60,))
    x = torch.randn(60, 4, dtype=torch.double) + labels[:, None]
    newton = fit_logistic(Samples(x), labels, 2, 0.5)
    monkeypatch.setattr(logistic, "_WIDEST", 1)
    lbfgs = fit_logistic(Samples(x), labels, 2, 0.5, start=newton)
    cold = fit_logistic(Samples(x), labels, 2, 0.5)
    torch.testing.assert_close(newton.weights, cold.weights, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(newton.weights, lbfgs.weights, rtol=1e-6, atol=1e-7)
    residual = torch.sigmoid(newton(x)[:, 0]) - labels
    assert float((x.T @ residual + 0.5 * newton.weights[0]).abs().max()) < 1e-7


def test_what_is_not_finite_is_said():
    with pytest.raises(ResultError, match="has no finite solution"):
        logistic._finite(torch.tensor([torch.nan]))
