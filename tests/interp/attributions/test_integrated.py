"""Integrated gradients: axioms, closed forms, captum at equal steps, and steps that grow."""

import pytest
import torch
from captum.attr import IntegratedGradients
from torch import nn
from torch.nn import functional as F

from nethook import interp
from nethook.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require grad")
GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(4, 5, generator=GENERATOR).double()
BASE = torch.randn(5, generator=GENERATOR).double()


def mlp(act: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, 16), act(), nn.Linear(16, 16), act(), nn.Linear(16, 3)
    ).double()


@pytest.mark.parametrize("act", [nn.GELU, nn.ReLU])
@pytest.mark.parametrize("steps", [7, 20])
def test_the_same_as_captum_at_equal_steps(act, steps):
    model = mlp(act)
    classes = torch.tensor([0, 1, 2, 0])
    found = interp.integrated_gradients(
        model, X, target=classes, baseline=BASE, steps=steps, tol=None
    )
    theirs, delta = IntegratedGradients(model).attribute(
        X, BASE.expand_as(X), classes, n_steps=steps, method="gausslegendre",
        return_convergence_delta=True,
    )  # fmt: skip
    assert torch.allclose(found.values, theirs.detach(), atol=1e-6)
    assert torch.allclose(found.delta, delta.detach(), atol=1e-6)
    assert found.steps.tolist() == [steps] * 4


def test_a_linear_model_in_closed_form():
    model = nn.Linear(5, 3).double()
    found = interp.integrated_gradients(model, X, target=1, baseline=BASE)
    assert torch.allclose(found.values, model.weight[1] * (X - BASE), atol=1e-14)
    assert found.steps.tolist() == [8] * 4


def test_steps_double_for_the_rows_that_need_it():
    model = mlp(nn.ReLU)
    easy = torch.zeros(1, 5).double()  # the baseline itself: nothing to integrate
    x = torch.cat([X, easy])
    found = interp.integrated_gradients(model, x, target=0, baseline=0, tol=1e-4, max_steps=4096)
    assert float(found.delta.abs().max()) <= 1e-4
    assert found.steps[-1] == 8
    assert found.steps.max() > 8
    assert {int(steps) for steps in found.steps} <= {8, 16} | {8 * 2**k - 1 for k in range(2, 10)}
    change = model(x)[:, 0] - model(torch.zeros_like(x))[:, 0]
    assert torch.allclose(found.values.sum(1), change, atol=1e-4)
    assert torch.allclose(found.score - found.start, change)


def test_no_gradient_is_taken_twice_when_steps_double():
    taken = []

    class Counting(nn.Module):
        def forward(self, x):
            if x.requires_grad:
                taken.append(len(x))
            return x

    model = nn.Sequential(Counting(), *mlp(nn.ReLU))
    interp.integrated_gradients(model, X, target=0, baseline=0, tol=None)  # what is asked at once
    once, beside = sum(taken), sum(taken) - 8 * len(X)
    taken.clear()
    found = interp.integrated_gradients(model, X, target=0, baseline=0, tol=1e-4, max_steps=4096)
    steps = found.steps.tolist()
    assert max(steps) > 31
    needed = [8 if n == 8 else 24 if n == 16 else 24 + n for n in steps]
    assert sum(taken) == sum(needed) + beside
    assert once < sum(taken)


def test_even_steps_in_closed_form():
    class Kinks(nn.Module):  # along the path the gradient is 0 up to 0.3, then 1, from 0.7 on 4
        def forward(self, x):
            return F.relu(x[:, 0] - 0.3) + 3 * F.relu(x[:, 0] - 0.7)

    one = torch.ones(1, 1).double()
    with pytest.warns(UserWarning, match="above tol"):
        found = interp.integrated_gradients(Kinks(), one, baseline=0, tol=2e-3, max_steps=64)
    assert found.steps.tolist() == [63]
    # Of 63 points k / 64, those from 20 on have 1, and those from 45 on have 4; the last counts for
    # one part and a half.
    expected = ((44 - 19) * 1 + (63 - 44) * 4 + 4 / 2) / 64
    assert float(found.values) == pytest.approx(expected, abs=1e-12)
    assert float(found.delta) == pytest.approx(expected - 1.6, abs=1e-12)


def test_a_smooth_path_keeps_the_better_rule():
    class Wave(nn.Module):
        def forward(self, x):
            return torch.sin(12 * x[:, 0])

    one = torch.ones(1, 1).double()
    found = interp.integrated_gradients(Wave(), one, baseline=0, tol=1e-12, steps=4, max_steps=64)
    assert found.steps.tolist() == [16]  # even points would be 1e-3 away
    assert float(found.delta.abs()) < 1e-12


def test_what_stays_above_the_tolerance_is_said():
    with pytest.warns(UserWarning, match=r"rows are above tol=1e-12 at 16 steps; raise max_steps"):
        found = interp.integrated_gradients(
            mlp(nn.ReLU), X, target=0, baseline=0, tol=1e-12, max_steps=16
        )
    assert "above tol=1e-12 at 16 steps" in repr(found)


def test_a_target_that_is_not_a_number_is_said():
    x = torch.stack([X[0], torch.full_like(X[0], torch.nan)])
    with pytest.warns(UserWarning, match=r"in 1 of 2 rows the target is NaN or infinite, for the"):
        found = interp.integrated_gradients(mlp(nn.GELU), x, target=0, baseline=0)
    assert found.notes == (
        "in 1 of 2 rows the target is NaN or infinite, for the input or for the baseline",
    )
    assert float(found.delta[0].abs()) < 1e-3


@pytest.mark.parametrize(
    "target",
    [lambda out: out.argmax(1).double(), lambda out: out[:, 0].detach(), lambda out: X[:, 0]],
)
@pytest.mark.parametrize(
    "method",
    [
        lambda target: interp.saliency(mlp(nn.ReLU), X, target),
        lambda target: interp.integrated_gradients(mlp(nn.ReLU), X, target, baseline=0),
        lambda target: interp.smooth_grad(mlp(nn.ReLU), X, target, samples=2),
    ],
)
def test_a_target_without_a_gradient_is_refused(method, target):
    with pytest.raises(OptionError, match=r"`target` must have a gradient; .*interp.occlusion"):
        method(target)


def test_implementation_invariance():
    model = mlp(nn.ReLU)

    class Functional(nn.Module):
        def forward(self, x):
            for layer in (model[0], model[2]):
                x = F.relu(layer(x), inplace=True)
            return model[4](x)

    one = interp.integrated_gradients(model, X, target=0, baseline=0, tol=None)
    two = interp.integrated_gradients(Functional(), X, target=0, baseline=0, tol=None)
    assert torch.equal(one.values, two.values)


def test_symmetry_and_dummies():
    class Product(nn.Module):
        def forward(self, x):
            return x[:, 0] * x[:, 1] * x[:, 2]

    x = torch.tensor([[2.0, 2.0, 2.0, 9.0]]).double()
    found = interp.integrated_gradients(Product(), x, baseline=0, tol=1e-9)
    assert torch.allclose(found.values, torch.tensor([[8 / 3, 8 / 3, 8 / 3, 0.0]]).double())


def test_a_function_as_target_and_a_site():
    model = mlp(nn.Tanh)
    fn = lambda out: out.log_softmax(1)[:, 2]  # noqa: E731
    found = interp.integrated_gradients(model, X, target=fn, at="1", baseline=0, tol=1e-8)
    assert float(found.delta.abs().max()) <= 1e-8
    rest = nn.Sequential(*model[2:])
    hidden = model[1](model[0](X)).detach()
    expected = interp.integrated_gradients(rest, hidden, target=fn, baseline=0, tol=1e-8)
    assert torch.allclose(found.values, expected.values, atol=1e-10)
    assert found.at == "1"


def test_regression_and_segmentation():
    torch.manual_seed(0)
    net = nn.Conv2d(1, 3, 3, padding=1).double()
    images = torch.randn(2, 1, 6, 6).double()
    region = torch.zeros(2, 6, 6).double()
    region[0, :2, :2], region[1, 4:, 4:] = 1, 1
    found = interp.integrated_gradients(
        net, images, target=lambda out: (out[:, 2] * region).sum((1, 2))
    )
    reached = F.max_pool2d(region[:, None], 3, 1, 1) > 0
    assert bool((found.values[~reached] == 0).all())
    assert bool((found.values[reached] != 0).any())
    point = interp.integrated_gradients(net, images, target=(2, 0, 0))
    assert int((point.values != 0).sum()) == 2 * 4


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"tol": 0}, "`tol` must be a positive number, or None"),
        ({"steps": 0}, "`steps` must be a positive number; got 0"),
        ({"max_steps": 1.5}, "`max_steps` must be a positive number"),
    ],
)
def test_options_are_checked(options, match):
    with pytest.raises(OptionError, match=match):
        interp.integrated_gradients(nn.Linear(5, 1).double(), X, baseline=0, **options)
