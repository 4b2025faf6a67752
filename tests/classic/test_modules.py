"""Names, replaced modules, and what requires a gradient."""

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import InputsError, PatternError


class Top(nn.Module):
    def __init__(self):
        super().__init__()
        self.top = nn.Linear(2, 2)
        self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def forward(self, x):
        return self.body(self.top(x))


def test_names():
    model = Top()
    assert nethook.module_names(model) == ["", "top", "body", "body.0", "body.1"]
    assert nethook.parameter_names(model) == [
        "top.weight",
        "top.bias",
        "body.0.weight",
        "body.0.bias",
    ]


@pytest.mark.parametrize("name", ["top", "body", "body.1"])
def test_a_module_is_replaced(name):
    """Old: UnboundLocalError where the name has no dot."""
    model, new = Top(), nn.Identity()
    nethook.replace_module(model, name, new)
    assert nethook.get_module(model, name) is new
    assert model(torch.ones(1, 2)).shape == (1, 2)


def test_a_module_inside_a_wrapper_is_replaced():
    model, new = nn.DataParallel(Top()), nn.Identity()
    nethook.replace_module(model, "top", new)
    assert model.module.top is new


def test_what_is_not_there_is_not_added():
    model = Top()
    with pytest.raises(LookupError, match="tip"):
        nethook.replace_module(model, "tip", nn.Identity())
    with pytest.raises(PatternError, match="inside the model; got ''"):
        nethook.replace_module(model, "", nn.Identity())


def test_a_missing_name_is_a_lookup_error():
    with pytest.raises(LookupError):
        nethook.get_module(Top(), "body.7")
    with pytest.raises(LookupError):
        nethook.get_parameter(Top(), "body.0.wait")


def test_requires_grad_is_set_for_modules_and_tensors():
    model, tensor, parameter = Top(), torch.ones(2), nn.Parameter(torch.ones(1))
    nethook.set_requires_grad(False, model, parameter)
    assert not any(each.requires_grad for each in model.parameters())
    assert not parameter.requires_grad
    nethook.set_requires_grad(True, model.top, tensor)
    assert tensor.requires_grad
    assert [each.requires_grad for each in model.parameters()] == [True, True, False, False]
    with pytest.raises(InputsError, match="got str"):
        nethook.set_requires_grad(True, "top")
