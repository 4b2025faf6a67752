"""Where a model is, and models that have shapes alone."""

import pytest
import torch
from torch import nn

from nethook import edits, interp
from nethook.errors import OptionError
from nethook.interp.devices import device_of, moved_inputs


def first(out):
    return out[:, 0]


@pytest.mark.parametrize(
    "study",
    [
        lambda m, x: interp.sweep(m, x, at="0", change=edits.zero(), metric=first),
        lambda m, x: interp.attribute(m, x, x + 1, at="0", metric=first),
        lambda m, x: interp.integrated_gradients(m, x, target=0, baseline=0),
        lambda m, x: interp.saliency(m, x, target=0),
        lambda m, x: interp.lens(m, x, at="0"),
    ],
)
def test_a_model_without_values_is_refused(study):
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh()).to("meta")
    for device in ("cpu", "meta"):
        with pytest.raises(OptionError, match=r"got one on the device meta.*to_empty"):
            study(model, torch.ones(2, 4, device=device))


def test_weights_that_others_bring_are_waited_for():
    model = nn.Sequential(nn.Linear(4, 3, device="meta"))
    weight, bias = torch.ones(3, 4), torch.zeros(3)

    def bring(module, _):
        module.weight = nn.Parameter(weight)
        module.bias = nn.Parameter(bias)

    model[0].register_forward_pre_hook(bring)
    assert device_of(model) == torch.device("meta")
    result = interp.sweep(model, torch.ones(2, 4), at="0", change=edits.zero(), metric=first)
    assert result.effect.flatten().tolist() == [-4, -4]


def test_inputs_go_where_the_model_is():
    model = nn.Linear(4, 3)
    given = moved_inputs({"input": torch.ones(2, 4)}, device_of(model))
    assert given.kwargs["input"].device == model.weight.device
    assert device_of(nn.ReLU()) is None
