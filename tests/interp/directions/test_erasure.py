"""LEACE: nothing linear is left, and less is changed than by any other linear way."""

import pytest
import torch
from torch import nn

import nethook
from nethook import edits, interp
from nethook.errors import OptionError


def concept(rows=1500, classes=3, width=10):
    random = torch.Generator().manual_seed(0)
    mix = torch.randn(width, width, generator=random, dtype=torch.double) * torch.logspace(
        -1, 1, width, dtype=torch.double
    )
    labels = torch.randint(0, classes, (rows,), generator=random)
    means = torch.randn(classes, width, generator=random, dtype=torch.double)
    x = torch.randn(rows, width, generator=random, dtype=torch.double) @ mix + means[labels]
    return x, labels


def cross_covariance(x, z):
    return (x - x.mean(0)).T @ (z - z.mean(0)) / len(x)


def test_nothing_linear_is_left_and_the_change_is_the_closed_optimum():
    x, labels = concept()
    z = nn.functional.one_hot(labels).double()
    edit = interp.erase(x, labels)
    erased = edit(x)
    assert float(cross_covariance(erased, z).abs().max()) < 1e-12
    sigma = torch.cov(x.T, correction=0)
    values, vectors = torch.linalg.eigh(sigma)
    whiten = vectors @ torch.diag(values.rsqrt()) @ vectors.T
    columns = whiten @ cross_covariance(x, z)
    project = columns @ torch.linalg.pinv(columns, rtol=1e-10)
    formula = x - (x - x.mean(0)) @ (torch.linalg.inv(whiten) @ project @ whiten).T
    torch.testing.assert_close(erased, formula)
    change = float((erased - x).square().sum(1).mean())
    optimum = float((torch.linalg.inv(whiten) @ project).square().sum())
    assert change == pytest.approx(optimum)
    span = torch.linalg.svd(cross_covariance(x, z), full_matrices=False).U[:, :2]
    orthogonal = (x - x.mean(0)) @ span @ span.T
    assert change < float(orthogonal.square().sum(1).mean())
    assert edit.left.shape == (10, 2)  # of rank classes - 1
    torch.testing.assert_close(erased.mean(0), x.mean(0))


def test_a_logistic_probe_is_at_chance():
    x, labels = concept(rows=600, classes=2)
    before = interp.probe(x, labels, folds=3)
    after = interp.probe(interp.erase(x, labels)(x), labels, folds=3)
    assert before.score > 0.6
    assert after.score <= after.baseline + 0.02


def test_numbers_constant_features_and_an_edit_that_is_saved(tmp_path):
    x, _ = concept(rows=200)
    x = torch.cat([x, torch.ones(200, 1).double(), x[:, :1]], 1)  # singular
    numbers = x[:, :2] + torch.randn(200, 2, dtype=torch.double)
    edit = interp.erase(x, numbers)
    assert float(cross_covariance(edit(x), numbers).abs().max()) < 1e-12
    assert torch.equal(edit(x)[:, 10], x[:, 10])
    edits.save(tmp_path / "e.json", outputs={"0": edit})
    loaded = edits.load(tmp_path / "e.json")
    assert loaded["outputs"]["0"][""][0] == edit
    model = nn.Sequential(nn.Identity())
    with nethook.edit(model, **loaded):
        assert torch.equal(model(x), edit(x))
        assert model(x.float()[None]).shape == (1, 200, 12)


def test_refusals():
    with pytest.raises(OptionError, match="must be the features of one site; got 2 sites"):
        interp.erase({"a": torch.ones(2, 2), "b": torch.ones(2, 2)}, [0, 1])
    with pytest.raises(OptionError, match="`X` must vary"):
        interp.erase(torch.ones(4, 2), [0, 1, 0, 1])
