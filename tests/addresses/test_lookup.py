"""`get_module` and `get_parameter`, against torch's `get_submodule` and `get_parameter`."""

from __future__ import annotations

import pytest
from torch import nn
from torch.nn.utils import parametrize

from nethook import get_module, get_parameter
from nethook.errors import InputsError, NoSuchSiteError, PatternError
from tests.addresses.networks import ODD, Diamonds, Shared, Small, Tied, odd_names


@pytest.mark.parametrize("make", [Small, Shared, Tied, Diamonds, odd_names])
def test_each_name_leads_where_torch_leads(make):
    model = make()
    for name, _ in model.named_modules(remove_duplicate=False):
        assert get_module(model, name) is model.get_submodule(name)
    for name, _ in model.named_parameters(remove_duplicate=False):
        assert get_parameter(model, name) is model.get_parameter(name)
    for name, _ in model.named_buffers(remove_duplicate=False):
        assert get_parameter(model, name) is model.get_buffer(name)


@pytest.mark.parametrize("name", ODD)
def test_a_name_is_literal(name):
    model = odd_names()
    assert get_module(model, name) is model[name]
    assert get_parameter(model, f"{name}.bias") is model[name].bias


def test_a_name_may_also_be_spelt_with_backslashes():
    model = odd_names()
    assert get_module(model, r"a\/b") is model["a/b"]
    assert get_module(model, r"a\*b") is model["a\\*b"]  # but plain spelling comes first


def test_a_parametrised_weight_is_the_tensor_that_the_optimizer_changes():
    model = nn.Sequential(nn.Linear(2, 2))
    parametrize.register_parametrization(model[0], "weight", nn.Tanh())
    original = model[0].parametrizations.weight.original
    assert get_parameter(model, "0.weight") is original
    assert get_parameter(model, "0.parametrizations.weight.original") is original


LITERAL = "The name is literal: for globs use nethook.select."
REST = "'block1.0', 'block1'."
FIRST = "'', 'block1', 'block1.0', 'block1.1'"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fc3", "the model has no module 'fc3'. Closest: 'fc2', 'fc1'."),
        (
            "block1.3",
            "the model has no module 'block1.3'. Closest: 'block1.2', 'block1.1', " + REST,
        ),
        ("fc*", f"the model has no module 'fc*'. {LITERAL} Closest: 'fc2', 'fc1'."),
        ("fc[", f"the model has no module 'fc['. {LITERAL} Closest: 'fc2', 'fc1'."),
        ("xyz", f"the model has no module 'xyz'. The model's modules: {FIRST} and 6 more."),
    ],
)
def test_a_module_that_is_not_there_is_said_with_what_is_close(name, text):
    with pytest.raises(NoSuchSiteError) as caught:
        get_module(Small(), name)
    assert str(caught.value) == text


@pytest.mark.parametrize("name", ["nothing", "absent", "unset", "fc1.weight"])
def test_what_is_none_or_no_module_is_not_there(name):
    with pytest.raises(LookupError):
        get_module(Small(), name)


def test_a_parameter_that_is_not_there_is_said_with_what_is_close():
    with pytest.raises(NoSuchSiteError) as caught:
        get_parameter(Small(), "fc1.wieght")
    assert str(caught.value).startswith(
        "the model has no parameter 'fc1.wieght'. Closest: 'fc1.weight', "
    )
    for name in ("fc1", "unset", ""):
        with pytest.raises(KeyError):
            get_parameter(Small(), name)


@pytest.mark.parametrize("name", [3, None, nn.Linear])
def test_a_name_is_a_string(name):
    with pytest.raises(PatternError) as caught:
        get_module(Small(), name)
    assert str(caught.value) == (
        f"`name` must be a string, the name of a module; got {name!r} of type "
        f"{type(name).__name__}. For other patterns use nethook.select."
    )


def test_what_is_no_model_is_refused():
    with pytest.raises(InputsError, match=r"`model` must be an nn.Module; got dict"):
        get_parameter({}, "fc1")
