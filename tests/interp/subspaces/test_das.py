"""DAS finds a planted subspace, and its controls find nothing."""

import pytest
import torch

import nethook
from nethook import interp
from nethook.errors import OptionError
from nethook.interp.subspaces.das import Subspace
from tests.interp.subspaces.planted import pairs, planted


def test_a_planted_subspace_is_found_and_controls_are_at_chance(tmp_path):
    model, unit = planted()
    base, source, labels = pairs(300)
    model.train()
    weights = [p.clone() for p in model.parameters()]
    before = torch.random.get_rng_state()
    found = interp.das(model, base, source, labels, at="0", steps=120)
    assert abs(float(found.basis[:, 0] @ unit)) > 0.99
    assert found.accuracy > 0.95
    assert found.random_basis < 0.8
    assert found.arbitrary_labels < 0.65
    assert found.random_weights < 0.8
    assert float(found.losses[-1]) < float(found.losses[0])
    assert model.training
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(map(torch.equal, weights, model.parameters()))
    assert all(p.grad is None for p in model.parameters())
    assert not nethook.audit(model)
    with nethook.edit(model, outputs={"0": found.swap(nethook.features(model, source, at="0"))}):
        assert float((model(base).argmax(1) == labels).double().mean()) > 0.95
    found.save(tmp_path / "s.json")
    again = Subspace.load(tmp_path / "s.json")
    assert repr(again) == repr(found)
    assert "subspace of 1 of 8 features at 0" in repr(found)
    assert len(found.figure().data[0].y) == 5
    assert found.figure().layout.xaxis.title.text == "accuracy"


def test_refusals():
    model, _ = planted()
    base, source, labels = pairs(20)
    with pytest.raises(OptionError, match="must have the same rows, at least 4; got 20, 10 and"):
        interp.das(model, base, source[:10], labels, at="0")
    with pytest.raises(OptionError, match="`size` must be at most 8, the features; got 9"):
        interp.das(model, base, source, labels, at="0", size=9)
    with pytest.raises(OptionError, match="`steps` must be a positive number"):
        interp.das(model, base, source, labels, at="0", steps=0)
    with pytest.raises(
        OptionError, match=r"`read` must give logits \(rows, classes\); got \(10,\)"
    ):
        interp.das(model, base, source, labels, at="0", read=lambda out: out[:, 0])
