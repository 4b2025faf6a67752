"""SmoothGrad and GradientSHAP: closed forms, loops by hand, and their standard errors."""

import pytest
import torch
from torch import nn

from nethook import interp
from nethook.errors import OptionError

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).double()
DATA = torch.randn(10, 4, generator=torch.Generator().manual_seed(1)).double()


class Squares(nn.Module):
    def forward(self, x):
        return (x**2).sum(1)


def test_a_linear_model_has_no_error():
    model = nn.Linear(4, 1).double()
    smooth = interp.smooth_grad(model, X)
    assert torch.allclose(smooth.values, model.weight.expand(3, 4))
    assert float(smooth.errors.max()) < 1e-7
    found = interp.gradient_shap(model, X, baseline=DATA, samples=20)  # each baseline twice
    assert torch.allclose(found.values, model.weight * (X - DATA.mean(0)))
    assert torch.allclose(found.start, model(DATA).mean().expand(3))
    assert float(found.delta.abs().max()) < 1e-12


def test_noise_is_a_share_of_each_rows_range():
    found = interp.smooth_grad(Squares(), X, noise=0.2, samples=4000, seed=3)
    spread = 2 * 0.2 * (X.amax(1) - X.amin(1)) / 4000**0.5
    assert torch.allclose(found.errors, spread[:, None].expand(3, 4), rtol=0.1)
    assert bool(((found.values - 2 * X).abs() < 4.5 * found.errors).all())
    assert torch.equal(interp.smooth_grad(Squares(), X, noise=0.0, samples=2).values, 2 * X)


def test_expected_gradients_of_squares():
    # The gradient at b + t (x − b), times x − b, over all t: x² − b².
    found = interp.gradient_shap(Squares(), X, baseline=DATA, samples=4000)
    expected = X.square() - DATA.square().mean(0)
    assert bool(((found.values - expected).abs() < 4.5 * found.errors + 1e-9).all())
    assert torch.allclose(found.start, DATA.square().sum(1).mean().expand(3))


def test_it_is_the_mean_of_integrated_gradients():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    each = [interp.integrated_gradients(model, X, baseline=row, tol=1e-9).values for row in DATA]
    found = interp.gradient_shap(model, X, baseline=DATA, samples=3000)
    assert bool(((found.values - sum(each) / 10).abs() < 4.5 * found.errors).all())


def test_the_same_seed_gives_the_same():
    one, two, other = (interp.smooth_grad(Squares(), X, samples=4, seed=s) for s in (1, 1, 2))
    assert torch.equal(one.values, two.values)
    assert not torch.equal(one.values, other.values)
    assert interp.smooth_grad(Squares(), X, samples=1).errors.isnan().all()


def test_baselines_as_token_ids():
    model = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(6, 1)).double()
    ids, pool = torch.tensor([[1, 2]]), torch.tensor([[0, 0], [3, 4]])
    found = interp.gradient_shap(model, ids, at="0", baseline=pool, samples=4)
    expected = model[0](ids) - model[0](pool).mean(0)
    assert torch.allclose(found.values, expected * model[2].weight.reshape(2, 3))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: interp.smooth_grad(Squares(), X, samples=0), "`samples` must be a positive numb"),
        (lambda: interp.smooth_grad(Squares(), X, noise=-1), "`noise` must be zero or a positive"),
        (lambda: interp.gradient_shap(Squares(), X, baseline=0), "rows of data to draw from"),
        (
            lambda: interp.gradient_shap(Squares(), X, baseline=DATA[:, :2]),
            r"of the shape \(…, 4\)",
        ),
    ],
)
def test_options_are_checked(call, match):
    with pytest.raises(OptionError, match=match):
        call()
