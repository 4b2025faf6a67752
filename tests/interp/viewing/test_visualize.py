"""Feature visualisation against closed forms."""

import pytest
import torch
from torch import nn

import nethook
from nethook import interp
from nethook.errors import OptionError
from nethook.interp.viewing.visualize import Visualisation


def test_a_linear_unit_ends_at_its_weights_and_all_is_left_as_it_was():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 3), nn.ReLU()).train()
    before = torch.random.get_rng_state()
    found = interp.visualize(model, "1", 2, shape=(6,), norm=1.0, steps=300, progress=False)
    w = model[1].weight[2].detach()
    torch.testing.assert_close(found.image, w / w.norm(), rtol=0, atol=1e-3)
    assert model.training
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(p.grad is None for p in model.parameters())
    assert not nethook.audit(model)
    # Behind a rectifier that is off there is no gradient: what it is given is taken.
    nn.init.constant_(model[1].bias, -100.0)
    behind = interp.visualize(model, "2", 2, shape=(6,), norm=1.0, steps=300)
    torch.testing.assert_close(behind.image, found.image, rtol=0, atol=1e-3)


def test_a_filter_is_what_its_unit_likes_best():
    torch.manual_seed(0)
    model = nn.Conv2d(1, 2, 5, bias=False)
    found = interp.visualize(
        model, "", 1, shape=(1, 5, 5), parameters="pixels", norm=1.0, steps=200
    )
    w = model.weight[1].detach()
    torch.testing.assert_close(found.image, w / w.norm(), rtol=0, atol=2e-3)


def test_fourier_images_rise_and_lie_between_zero_and_one(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 5), nn.Tanh(), nn.Conv2d(4, 4, 3), nn.ReLU(inplace=True))
    found = interp.visualize(model, "2", 1, shape=(3, 16, 16), steps=40, position=(4, 4))
    assert float(found.objective[-5:].mean()) > float(found.objective[:5].mean())
    assert 0 <= float(found.image.min()) < float(found.image.max()) <= 1
    again = interp.visualize(model, "2", 1, shape=(3, 16, 16), steps=40, position=(4, 4))
    assert torch.equal(again.image, found.image)
    shifted = interp.visualize(
        model, "2", 1, shape=(3, 16, 16), steps=3, jitter=False, prepare=lambda image: image - 0.5
    )
    assert not torch.equal(shifted.image, found.image)
    found.save(tmp_path / "v.json")
    assert repr(Visualisation.load(tmp_path / "v.json")) == repr(found)
    assert found.figure().data[0].type == "image"
    plain = interp.visualize(model, "2", 1, shape=(3, 9, 9), parameters="pixels", steps=2)
    assert plain.image.shape == (3, 9, 9)


def test_refusals():
    model = nn.Linear(4, 3)
    for given, match in (
        ({"unit": 3}, "`unit` must lie between 0 and 2"), ({"steps": 0}, "`steps` must be"),
        ({"parameters": "fourier"}, "`parameters` must be"),
        ({"position": (1,)}, "`position` must be a place in"),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=match):
            interp.visualize(model, "", **{"unit": 0, "shape": (4,), **given})
