"""Planted directions are found, by every method."""

import pytest
import torch
from torch import nn

import nethook
from nethook import interp
from nethook.errors import OptionError
from tests.interp.directions.planted import SITE, gaussian, gpt2


@pytest.mark.parametrize("method", ["mean", "pca", "logistic"])
def test_a_planted_direction_is_found(method):
    x, labels, unit = gaussian(rows=6000)
    here, there = x[labels == 1], x[labels == 0]
    count = min(len(here), len(there))
    v = interp.direction(None, here[:count], there[:count], method=method)
    assert float(v.vector @ unit) > 0.99
    assert float(v.vector.norm()) == pytest.approx(1)
    assert v.auc > 0.95


def test_the_methods_by_their_formulas():
    x, labels, _ = gaussian(rows=200)
    here, there = x[labels == 1][:80], x[labels == 0][:80]
    mean = here.mean(0) - there.mean(0)
    torch.testing.assert_close(interp.direction(None, here, there).vector, mean / mean.norm())
    found = interp.direction(None, here, there, method="pca").vector
    _, vectors = torch.linalg.eigh((here - there).T @ (here - there))
    assert abs(float(found @ vectors[:, -1])) == pytest.approx(1)
    assert int(((here - there) @ found > 0).sum()) >= 40  # by majority
    turned = interp.direction(None, there, here, method="pca").vector
    torch.testing.assert_close(turned, -found)


def test_at_a_site_of_a_model_everything_is_left_as_it_was():
    model = gpt2().train()
    ids = torch.arange(1, 25).reshape(4, 6)
    before = torch.random.get_rng_state()
    v = interp.direction(model, ids, ids + 3, at=SITE, pool="mean")
    assert model.training
    assert torch.equal(before, torch.random.get_rng_state())
    assert not nethook.audit(model)
    assert all(p.grad is None for p in model.parameters())
    model.eval()
    loaded = interp.direction(model, [(ids[:2],), (ids[2:],)], [(ids + 3,)], at=SITE,
                              pool="mean")  # fmt: skip
    torch.testing.assert_close(loaded.vector, v.vector)
    here, there = (
        nethook.features(model, data, at=SITE, pool="mean").mean(0) for data in (ids, ids + 3)
    )
    apart = here - there
    torch.testing.assert_close(v.vector, apart / apart.norm())


def test_refusals():
    x = torch.randn(4, 3)
    with pytest.raises(OptionError, match='`method` must be "mean", "pca" or "logistic"'):
        interp.direction(None, x, x + 1, method="median")
    with pytest.raises(OptionError, match="the same mean for both"):
        interp.direction(None, x, x)
    with pytest.raises(OptionError, match="must be pairs for method"):
        interp.direction(None, x, x[:2] + 1, method="pca")
    with pytest.raises(OptionError, match="as many features as each other; got 3 and 2"):
        interp.direction(None, x, x[:, :2])
    with pytest.raises(OptionError, match="must be finite"):
        interp.direction(None, x, x * torch.nan)
    with pytest.raises(OptionError, match=r"`positive` must be features.*got \(4,\)"):
        interp.direction(None, x[:, 0], x)
    with pytest.raises(OptionError, match="`at` must be left out where model is None"):
        interp.direction(None, x, x + 1, at="0")
    with pytest.raises(OptionError, match="`at` must be the address of one site"):
        interp.direction(nn.Linear(3, 3), x, x + 1)
