"""A wrong keyword: the text is Python's own, from 3.13 on, whatever Python runs it."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn

import nethook
from nethook.keywords import suggests


def plain(model: int, *patterns: str, grads: bool = False, inputs: bool = False) -> int:
    """Adds."""
    return model + len(patterns) + grads + inputs + len(str(model))


def raises(model: int, grads: int = 0) -> None:
    plain(model, grad=grads)  # type: ignore[call-arg]


def test_the_closest_keyword_is_named() -> None:
    with pytest.raises(TypeError) as caught:
        suggests(plain)(1, "a", grad=True)  # type: ignore[call-arg]
    assert str(caught.value) == (
        "plain() got an unexpected keyword argument 'grad'. Did you mean 'grads'?"
    )


def test_where_nothing_is_close_it_is_the_error_that_it_was() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'xyz'$"):
        suggests(plain)(1, xyz=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"missing 1 required positional argument"):
        suggests(plain)(grads=True)  # type: ignore[call-arg]


def test_an_error_from_inside_is_not_touched() -> None:
    with pytest.raises(TypeError, match="keyword argument 'grad'") as caught:
        suggests(raises)(1, grads=2)
    assert caught.value.__traceback__ is not None
    assert caught.traceback[-1].name == "raises"


def test_otherwise_it_is_the_same_function() -> None:
    wrapped = suggests(plain)
    assert wrapped(1, "a", "b", inputs=True) == plain(1, "a", "b", inputs=True)
    assert inspect.signature(wrapped) == inspect.signature(plain)
    assert wrapped.__doc__ == plain.__doc__


@pytest.mark.parametrize(
    ("function", "wrong", "meant"),
    [
        (nethook.trace, "grad", "grads"),
        (nethook.trace, "input", "inputs"),
        (nethook.edit, "output", "outputs"),
        (nethook.edit, "param_grad", "param_grads"),
        (nethook.watch, "quantity", "quantities"),
        (nethook.checkup, "optim", "optimizer"),
    ],
)
def test_functions_that_are_called_with_many_keywords(
    function: object, wrong: str, meant: str
) -> None:
    assert callable(function)
    said = f"unexpected keyword argument '{wrong}'. Did you mean '{meant}'\\?"
    with pytest.raises(TypeError, match=said):
        function(nn.Linear(2, 2), torch.zeros(1, 2), **{wrong: True})
