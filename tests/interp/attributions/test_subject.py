"""The subject: rows chosen, values put in place, everything left as it was."""

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import OptionError
from nethook.interp.attributions.subject import subject


class Noisy(nn.Module):
    """Writes to its input, to a buffer, draws numbers, and drops some."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x, scale=None):
        self.seen += 1
        torch.rand(2)
        x.mul_(2.0)
        out = self.drop(self.norm(self.linear(x)))
        return out if scale is None else out * scale


def test_a_run_leaves_everything_as_it_was():
    torch.manual_seed(0)
    model = Noisy().train()
    model.linear.weight.grad = torch.ones_like(model.linear.weight)
    x = torch.randn(4, 3)
    before = x.clone()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random = torch.get_rng_state()
    for run in (
        lambda: nethook.interp.integrated_gradients(model, x, target=0, baseline=0, tol=10.0),
        lambda: nethook.interp.op_lift(model, x, target=0, baseline=0),
        lambda: nethook.interp.occlusion(model, x, target=0, baseline=0),
        lambda: nethook.interp.smooth_grad(model, x, target=0, samples=3),
    ):
        run()
        assert torch.equal(x, before)
        assert model.training
        assert model.drop.training
        assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
        assert model.linear.weight.requires_grad
        assert torch.equal(model.linear.weight.grad, torch.ones_like(model.linear.weight))
        assert model.linear.bias.grad is None
        assert torch.equal(torch.get_rng_state(), random)
        assert not nethook.audit(model)


def test_gradients_of_chosen_rows_are_those_of_autograd():
    torch.manual_seed(0)
    model = Noisy().eval()
    x, scale = torch.randn(3, 3), torch.rand(3, 1)
    which = torch.tensor([2, 0])
    with subject(model, nethook.inputs(x, scale=scale), [0, 1, 1], None) as study:
        score, grads = study.gradients(study.value[which], which)
    leaf = x[which].requires_grad_()
    expected = model(leaf * 1.0, scale[which])[torch.arange(2), torch.tensor([1, 0])]
    assert torch.equal(score, expected.detach())
    assert torch.equal(grads, torch.autograd.grad(expected.sum(), leaf)[0])


def test_a_value_at_a_site():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
    x = torch.randn(2, 3)
    with subject(model, x, 0, "0") as study:
        assert torch.equal(study.value, model[0](x).detach())
        new = torch.randn(2, 4)
        found = study.scores(new, torch.arange(2))
        assert torch.equal(found, model[2](new.relu())[:, 0].detach())


def test_inside_inference_mode():
    model = nn.Linear(3, 1)
    with torch.inference_mode():
        found = nethook.interp.saliency(model, torch.randn(2, 3))
    assert torch.equal(found.values, model.weight.detach().expand(2, 3))


def test_ids_have_no_gradient():
    model = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(6, 1))
    ids = torch.tensor([[0, 1], [2, 3]])
    with pytest.raises(
        OptionError, match=r"`at` must name the embedding .*; got None. Token ids have"
    ):
        nethook.interp.saliency(model, ids)
    assert nethook.interp.saliency(model, ids, at="0").values.shape == (2, 2, 3)


def test_sites_that_are_not_one_value():
    shared = nn.ReLU()
    model = nn.Sequential(nn.Linear(3, 3), shared, nn.Linear(3, 3), shared)
    x = torch.randn(2, 3)
    with pytest.raises(
        OptionError, match=r"`at` must name a site that runs once; got '1', which ran 2"
    ):
        nethook.interp.saliency(model, x, target=0, at="1")
    with pytest.raises(OptionError, match=r"`at` must name one site; got .*'0', '2'"):
        nethook.interp.saliency(model, x, target=0, at=nn.Linear)


def test_the_first_of_several_inputs_is_named():
    class Two(nn.Module):
        def forward(self, a, b):
            return (a * b).sum(1)

    a, b = torch.randn(2, 2, 3)
    found = nethook.interp.saliency(Two(), (a, b))
    assert torch.equal(found.values, b)
    assert "of 2 inputs with gradient, the first" in repr(found)
