"""The tuned lens: it begins as the logit lens, and a linear network is learnt exactly."""

import pytest
import torch
from torch import nn

import nethook
from nethook import interp
from nethook.errors import OptionError
from nethook.interp.lenses.tuned import TunedLens
from tests.interp import families


class Linear(nn.Module):
    """A residual network without anything that is not linear."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
        self.head = nn.Linear(6, 5)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def test_it_begins_as_the_logit_lens_and_ends_near_the_model(tmp_path):
    torch.manual_seed(0)
    model = Linear().double().train()
    x = torch.randn(64, 6, dtype=torch.double)
    weights = [p.clone() for p in model.parameters()]
    tuned = interp.tuned_lens(model, x, at="blocks.*", epochs=250, lr=0.05)
    plain = interp.lens(model, x, at="blocks.*")
    torch.testing.assert_close(tuned.kl[0], plain.kl().mean(1).double(), rtol=1e-4, atol=1e-6)
    assert float(tuned.kl[0, 0]) > 0.02
    assert float(tuned.kl[-1].max()) < 1e-3
    assert float(tuned.lens(model, x).kl().max()) < 1e-2
    assert model.training
    assert all(map(torch.equal, weights, model.parameters()))
    assert all(p.grad is None for p in model.parameters())
    assert not nethook.audit(model)
    tuned.save(tmp_path / "t.json")
    again = TunedLens.load(tmp_path / "t.json")
    assert torch.equal(again.weights["blocks.0"], tuned.weights["blocks.0"])
    assert repr(again) == repr(tuned)
    assert "tuned lens of 3 layers, 250 steps" in repr(tuned)
    with pytest.raises(OptionError, match="`site` must be one of blocks"):
        tuned.translate(x, "head")


def test_a_transformer_finds_its_blocks_and_the_last_layer_stays_the_model():
    model, inputs = families.built("gpt2")
    tuned = interp.tuned_lens(model, inputs, epochs=3)
    assert len(tuned.sites) == families.LAYERS
    assert float(tuned.kl[0, -1]) < 1e-6
    assert float(tuned.kl[-1, 0]) < float(tuned.kl[0, 0])
    with pytest.raises(OptionError, match="`epochs` must be a positive number"):
        interp.tuned_lens(model, inputs, epochs=0)
