"""Facts written into weights: exact, least, refused where they would destroy."""

import pytest
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

import nethook
from nethook import edits, interp
from nethook.errors import OptionError


@pytest.fixture
def facts():
    random = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=random, dtype=torch.double)

    data = draw(200, 6) * torch.logspace(-1, 1, 6, dtype=torch.double)
    return draw(4, 6), draw(3, 6), draw(3, 4), data.T @ data / 200


def test_one_fact_by_the_formula(facts):
    w, keys, values, c = facts
    k, v = keys[0], values[0]
    new = interp.rewrite(w, keys=k, values=v, covariance=c)(w)
    u = torch.linalg.inv(c) @ k
    torch.testing.assert_close(new, w + torch.outer(v - w @ k, u) / (k @ u))
    torch.testing.assert_close(new @ k, v)
    plain = interp.rewrite(w, keys=k, values=v)(w)  # C = I is the projection
    torch.testing.assert_close(plain, w + torch.outer(v - w @ k, k) / (k @ k))
    across = keys[1] - (keys[1] @ k) / (k @ k) * k
    torch.testing.assert_close(plain @ across, w @ across)


def test_many_facts_are_all_reached_with_the_least_change(facts):
    w, keys, values, c = facts
    edit = interp.rewrite(w, keys=keys, values=values, covariance=c)
    new = edit(w)
    torch.testing.assert_close(new @ keys.T, values.T)
    assert edit.left.shape == (4, 3)
    root = torch.linalg.cholesky(c)
    least = (new - w) @ root
    others = torch.linalg.svd(keys).Vh[3:]  # a change that no key sees
    assert float((least * (others[0] @ root)).sum(1).abs().max()) < 1e-9  # orthogonal in C
    averaged = keys[:, None] + torch.tensor([[-1.0], [1.0]]).double()  # two prefixes a fact
    same = interp.rewrite(w, keys=averaged, values=values, covariance=c)
    torch.testing.assert_close(same(w), new)


def test_with_keep_it_is_the_ridge_solution(facts):
    w, keys, values, c = facts
    new = interp.rewrite(w, keys=keys, values=values, covariance=c, keep=0.3)(w)
    k, residual = keys.T, values.T - w @ keys.T
    expected = w + residual @ k.T @ torch.linalg.inv(0.3 * c + k @ k.T)
    torch.testing.assert_close(new, expected)
    gradient = (new @ k - values.T) @ k.T + 0.3 * (new - w) @ c  # of what it minimises
    assert float(gradient.abs().max()) < 1e-9


@pytest.mark.parametrize("kind", [nn.Linear, Conv1D])
def test_layers_of_either_layout_with_their_bias_and_recipes(kind, facts, tmp_path):
    _, keys, values, c = facts
    layer = (nn.Linear(6, 4) if kind is nn.Linear else Conv1D(4, 6)).double()
    nn.init.normal_(layer.bias)
    model = nn.Sequential(layer)
    before = layer.weight.clone()
    fact = interp.rewrite(layer, keys=keys, values=values, covariance=c, model=model)
    edits.save(tmp_path / "f.json", params={"0.weight": fact})
    with nethook.edit(model, **edits.load(tmp_path / "f.json")):
        torch.testing.assert_close(model(keys), values)
    assert torch.equal(layer.weight, before)


def test_a_linear_associative_memory_forgets_nothing_else():
    keys, values = torch.eye(5, dtype=torch.double), torch.eye(5, dtype=torch.double).roll(1, 0)
    memory = values.T @ keys
    new = interp.rewrite(memory, keys=keys[2], values=values[0])(memory)
    torch.testing.assert_close(new @ keys[2], values[0])
    for other in (0, 1, 3, 4):
        assert torch.equal(new @ keys[other], memory @ keys[other])


def test_refusals(facts):
    w, keys, values, c = facts

    def refused(match, **given):
        whole = {"keys": keys, "values": values, "covariance": c, **given}
        with pytest.raises(OptionError, match=match):
            interp.rewrite(whole.pop("W", w), **whole)

    refused(
        "`keys` must not be zero; got zeros as key 1",
        keys=keys * torch.tensor([[1.0], [0.0], [1.0]]),
    )
    refused("`keys` must not depend on each other", keys=keys[[0, 0, 1]])
    refused("`covariance` must be positive definite", covariance=torch.outer(keys[0], keys[0]))
    refused("`covariance` must be positive definite", covariance=-c)
    refused(r"`covariance` must be finite and have the shape \(6, 6\)", covariance=c[:3])
    refused("Pass the layer itself, or the weight transposed", W=w.T)
    refused(r"must have the shapes \(facts, 6\) and \(facts, 4\)", values=values[:2])
    refused("must be finite", values=values * torch.nan)
    refused("`keep` must be a positive number", keep=0.0)
    refused(r"`W` must be a weight \(outputs, inputs\) or a layer; got \(4,\)", W=w[:, 0])
    refused("got ReLU", W=nn.ReLU())
    tied = nn.ModuleDict({"embed": nn.Embedding(4, 6), "head": nn.Linear(6, 4, bias=False)})
    tied["head"].weight = tied["embed"].weight
    refused("is tied to 1 other", W=tied["head"], model=tied)
