"""How a function of the user's is called: read off its signature once, whatever kind it is of."""

import functools
import inspect
from types import MethodType, SimpleNamespace

import pytest
import torch
from torch import nn

import nethook
from nethook.editing.calling import (
    call_form,
    call_unseen,
    not_in_place,
    parameters_of,
    signature_of,
    takes_value_alone,
)
from nethook.errors import EditError, InPlaceEditError
from nethook.hooks.ops.mode import ops_are_seen

WRITTEN = SimpleNamespace(what="outputs['fc1']")


class Holder:
    def one(self, value):
        return value

    def two(self, value, where):
        return value, where

    def named(self, value, *, site):
        return value, site

    def __call__(self, value):
        return value


def decorated(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


# Each with what it returns when an edit calls it with "value" at the site "fc1".
FUNCTIONS = [
    (lambda value: value, "value"),
    (lambda site: site, None),  # it has no value to take
    (lambda value, factor=2: (value, factor), ("value", 2)),
    (lambda *values: values, ("value",)),
    (lambda value, where: (value, where), ("value", "fc1")),
    (lambda value, site=None: (value, site), ("value", "fc1")),
    (lambda value, *, site: (value, site), ("value", "fc1")),
    (lambda value, **rest: (value, rest), ("value", {})),
    (decorated(lambda value, where: (value, where)), ("value", "fc1")),
    (Holder().one, "value"),
    (Holder().two, ("value", "fc1")),
    (Holder().named, ("value", "fc1")),
    (Holder(), "value"),
    (functools.partial(lambda factor, value: (factor, value), 2), (2, "value")),
    (MethodType(functools.partial(lambda factor, _, value: value, 2), Holder()), "value"),
]


@pytest.mark.parametrize("function", [function for function, _ in FUNCTIONS])
def test_the_quick_way_to_read_parameters_agrees_with_inspect(function):
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = sum(p.kind in positional and p.default is p.empty for p in parameters)
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    assert parameters_of(function) == (required, "site" in names)


@pytest.mark.parametrize(("function", "expected"), FUNCTIONS[:1] + FUNCTIONS[2:])
def test_a_function_is_given_what_it_takes(function, expected):
    assert call_form(function, WRITTEN)("value", "fc1") == expected


def test_the_value_alone_is_for_functions_and_methods_without_a_site():
    alone = [takes_value_alone(function) for function, _ in FUNCTIONS]
    kinds = [True, False, True, True, *[False] * 3, True, False, True, *[False] * 5]
    assert alone == kinds


def test_modules_and_builtins_do_not_say_what_they_take():
    assert signature_of(nn.ReLU()) is None
    assert signature_of(torch.relu) is None
    assert parameters_of(torch.relu) == (1, False)
    assert call_form(nn.ReLU(), WRITTEN)(torch.tensor([-1.0, 2.0]), "fc1").tolist() == [0, 2]


def test_a_function_that_requires_more_is_refused():
    with pytest.raises(EditError) as caught:
        call_form(lambda a, b, c: None, WRITTEN)
    assert str(caught.value) == (
        "The edit at outputs['fc1'] must take the value, and may take the address of its site; got "
        "a function that requires 3 arguments. Give the others defaults."
    )


def test_a_write_in_place_is_refused_only_where_nothing_is_returned():
    value = torch.ones(2)
    assert not_in_place(lambda value, _: None, value, "fc1") is None
    assert not_in_place(lambda value, _: value.mul_(2), value, "fc1") is value
    with pytest.raises(InPlaceEditError, match=r"'fc1' wrote .* `return value \* 2`"):
        not_in_place(lambda pair, _: (pair[1][0].mul_(2), None)[1], (1, [torch.zeros(1)]), "fc1")


def test_a_write_to_an_inference_tensor_cannot_be_noticed():
    with torch.inference_mode():
        value = torch.ones(2)
        assert not_in_place(lambda value, _: (value.mul_(2), None)[1], value, "fc1") is None


def test_what_an_edit_computes_is_no_operation_of_the_model():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, x):
            return self.inner(x) + 1

    model, seen = Model(), []

    def edit(value):
        return value + 10

    with nethook.trace(model, "**/add") as tape:
        model.inner.register_forward_hook(
            lambda _m, _i, output: (seen.append(ops_are_seen()), call_unseen(edit, output))[1]
        )
        y = model(torch.zeros(1))
    assert seen == [True]
    assert y.item() == 11
    assert [record.output.item() for record in tape.values()] == [11]
