"""Ridge against the normal equations and scikit-learn."""

import torch
from sklearn.linear_model import Ridge

from nethook.interp.directions.moments import moments
from nethook.interp.directions.ridge import fit_ridge
from nethook.interp.directions.samples import Samples


def test_it_solves_the_normal_equations_and_is_scikit_learns():
    torch.manual_seed(0)
    x = 5 + torch.randn(40, 6, dtype=torch.double)
    y = torch.randn(40, 2, dtype=torch.double)
    (sums,) = moments(Samples(x), y, torch.zeros(40, dtype=torch.long), 1)
    for fitted, penalty in zip(fit_ridge(sums, [10.0, 0.1]), [10.0, 0.1], strict=True):
        centred = x - x.mean(0)
        left = centred.T @ centred + penalty * torch.eye(6)
        expected = torch.linalg.solve(left, centred.T @ (y - y.mean(0))).T
        torch.testing.assert_close(fitted.weights, expected)
        other = Ridge(alpha=penalty).fit(x.numpy(), y.numpy())
        torch.testing.assert_close(fitted.weights, torch.tensor(other.coef_))
        torch.testing.assert_close(fitted.bias, torch.tensor(other.intercept_))
    twice = torch.cat([x, x], 1)  # without a penalty: the shortest of many solutions
    (sums,) = moments(Samples(twice), y, torch.zeros(40, dtype=torch.long), 1)
    fitted = fit_ridge(sums, [0.0])[0]
    torch.testing.assert_close(fitted.weights[:, :6], fitted.weights[:, 6:])
