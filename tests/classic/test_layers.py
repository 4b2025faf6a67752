"""The functions from before InstrumentedModel: dicts on the model."""

import gc

import pytest
import torch
from torch import nn

import nethook


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 1), nn.ReLU(inplace=True), nn.Conv2d(4, 2, 1))


@pytest.fixture
def x():
    return torch.randn(3, 1, 4, 4, generator=torch.Generator().manual_seed(1))


def test_outputs_are_retained_on_the_model(model, x):
    hooks = nethook.retain_layers(model, ["0", ("2", "last")])
    assert model.retained == {"0": None, "last": None}
    y = model(x)
    assert torch.equal(model.retained["last"], y)
    assert not model.retained["0"].requires_grad
    assert (model.retained["0"] < 0).any()  # before the in-place ReLU
    hooks.remove()
    hooks.remove()
    assert list(nethook.audit(model)) == []


def test_the_hooks_stay_where_nobody_keeps_the_handle(model, x):
    nethook.retain_layers(model, ["2"])
    gc.collect()
    assert torch.equal(model(x), model.retained["2"])


def test_outputs_are_edited_by_what_the_model_holds(model, x):
    plain = model(x)
    hooks = nethook.edit_layers(model, [("2", "last")])
    assert torch.equal(model(x), plain)
    model.ablation["last"] = [1.0, 0.0]
    assert torch.equal(model(x)[:, 0], torch.zeros(3, 4, 4))
    assert torch.equal(model(x)[:, 1], plain[:, 1])
    model.replacement["last"] = 5
    assert torch.equal(model(x)[:, 0], torch.full((3, 4, 4), 5.0))
    nethook.clear_edit(model)
    assert model.ablation == model.replacement == {"last": None}
    assert torch.equal(model(x), plain)
    hooks.remove()
    assert list(nethook.audit(model)) == []


def test_one_layer_at_a_time(model, x):
    kept, alpha, value = {}, {}, {}
    nethook.edit_layer_output(alpha, value, model[2], "edit")
    nethook.retain_layer_output(kept, model[2], "keep")
    alpha["edit"] = 1.0
    model(x)
    assert torch.equal(kept["keep"], torch.zeros(3, 2, 4, 4))


@pytest.mark.parametrize("function", [nethook.retain_layers, nethook.edit_layers])
def test_a_wrong_name_leaves_no_hook(model, function):
    with pytest.raises(AssertionError, match=r"^Layer 7 not found$"):
        function(model, ["0", "7"])
    assert list(nethook.audit(model)) == []
