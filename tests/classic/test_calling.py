"""invoke_with_optional_args: names first, then places."""

import functools

import pytest
import torch
from torch import nn

from nethook import invoke_with_optional_args as invoke


def given(*args, **kwargs):
    return args, kwargs


class Thing:
    def method(self, output):
        return output


@functools.wraps(lambda layer: None)
def wrapped(*args, **kwargs):
    return args, kwargs


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda: "none", "none"),
        (lambda output: output, 1),
        (lambda layer: layer, "fc"),
        (lambda x: x, 1),
        (lambda x, y: (x, y), (1, "fc")),
        (lambda layer, x: (layer, x), ("fc", 1)),
        (lambda x, inputs: (x, inputs), (1, (2,))),
        (lambda a, b, c: (a, b, c), (1, "fc", (2,))),
        (lambda a, b=0, *, c=0: (a, b, c), (1, "fc", 0)),
        (lambda *, layer, other=5: (layer, other), ("fc", 5)),
        (lambda x, *, layer: (x, layer), (1, "fc")),
        (lambda **kw: kw, {"output": 1, "layer": "fc", "inputs": (2,)}),
        (lambda layer, **kw: (layer, kw), ("fc", {"output": 1, "inputs": (2,)})),
        (lambda *a: a, (1, "fc", (2,))),
        (lambda layer, *a: (layer, a), ("fc", (1, (2,)))),
        (given, ((1,), {"layer": "fc", "inputs": (2,)})),
        (wrapped, (("fc",), {})),
        (Thing().method, 1),
        (functools.partial(lambda x, scale: (x, scale), scale=3), (1, 3)),
    ],
)
def test_a_function_is_given_what_it_takes(fn, expected):
    assert invoke(fn, output=1, layer="fc", inputs=(2,)) == expected


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda x: x, 1),
        (lambda x, imodel, name: (x, imodel, name), (1, 2, "l")),
        (lambda name, x: (name, x), ("l", 1)),
        (lambda x, strength=9: (x, strength), (1, 5)),
        (lambda *a, name: (a, name), ((1, 2, 5), "l")),
    ],
)
def test_positional_arguments_come_before_keywords_without_a_taker(fn, expected):
    assert invoke(fn, 1, 2, name="l", strength=5) == expected


def test_a_default_stays_where_nothing_is_left():
    assert invoke(lambda a, b=4, c=5: (a, b, c), a=1) == (1, 4, 5)
    assert invoke(lambda a, b=4, c=5: (a, b, c), c=7, a=1) == (1, 4, 7)


def test_too_few_arguments_are_named():
    def edit(a, b, c):
        return a

    with pytest.raises(TypeError, match=r"edit\(\) cannot be passed b, c\."):
        invoke(edit, 1)


def test_builtins_and_modules_are_given_the_value():
    x = torch.tensor([-1.0, 1.0])
    assert torch.equal(invoke(torch.relu, output=x, layer="fc"), torch.relu(x))
    assert torch.equal(invoke(nn.ReLU(), x, None, name="fc"), torch.relu(x))
    assert torch.equal(invoke(functools.partial(torch.clamp, min=0), output=x), torch.relu(x))
