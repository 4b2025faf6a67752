"""Which calls hold data, and which hold symbols."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from nethook.running.detecting.symbolic import MOST, is_symbolic

Symbol = SimpleNamespace


@pytest.mark.parametrize(
    "args",
    [
        (Symbol(shape=(None, 3), dtype="float32", history=(nn.Linear(2, 2), 0)),),
        ([Symbol(shape=(2,)), Symbol(shape=(2,))], None),
        ({"a": Symbol(shape=(2,))},),
        (torch.ones(2, device="meta"),),
    ],
)
def test_symbols_are_no_data(args):
    assert is_symbolic(args)


@pytest.mark.parametrize(
    "args",
    [
        (),
        (None,),
        (torch.ones(2),),
        (torch.ones(2, device="meta"), torch.ones(2)),
        ([{"image": torch.ones(2)}],),
        (["some", "words"],),
        (3,),
        (Symbol(tensors=torch.ones(2), mask=None),),
        # A batch of a graph: tensors in a mapping of an object of an object.
        (Symbol(_store=Symbol(_mapping={"x": torch.ones(2), "edge_index": torch.ones(2)})),),
        (Symbol(values=np.ones(3)),),
        ([Symbol(number=number) for number in range(MOST + 1)],),
    ],
)
def test_what_holds_values_is_data(args):
    assert not is_symbolic(args)


def test_an_object_that_holds_itself():
    symbol = Symbol(shape=(2,))
    symbol.me = [symbol]
    assert is_symbolic((symbol,))
