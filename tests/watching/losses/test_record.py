"""The record of one loss as plain data."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.watching.losses.graph import follow
from nethook.watching.losses.kinds import Operands
from nethook.watching.losses.marks import Marks
from nethook.watching.losses.record import analyse, shapes

Y, T = torch.tensor([0, 1, 2, 0]), torch.rand(4, 3)
LAYER = nn.Linear(2, 3)


def output() -> torch.Tensor:
    out = LAYER(torch.randn(4, 2))
    Marks().put(out.grad_fn, "", ())
    return out


def test_a_divided_loss():
    data = analyse((F.cross_entropy(output(), Y) / 4).grad_fn).data
    assert (data["kind"], data["factor"], data["divided_by"]) == ("cross_entropy", 0.25, 4.0)
    assert (data["negated"], data["floored"], data["terms"]) == (False, True, [])
    assert data["chain"][:2] == ["NllLoss", "LogSoftmax"]
    assert data["outside"] == ["Div"]
    json.dumps(data)  # plain data


def test_a_negated_loss():
    data = analyse((-F.mse_loss(output(), T)).grad_fn).data
    assert (data["factor"], data["negated"], data["divided_by"]) == (-1.0, True, None)


@pytest.mark.parametrize("first", [True, False])
def test_the_loss_among_penalties_is_the_main_term(first):
    penalty, loss = 0.01 * LAYER.weight.square().sum(), F.mse_loss(output(), T)
    data = analyse((penalty + loss if first else loss + penalty).grad_fn).data
    assert (data["kind"], data["penalties"]) == ("mse", 1)
    assert sorted(term["kind"] for term in data["terms"]) == ["mse", "penalty"]


def test_label_smoothing_is_an_option_and_no_term():
    data = analyse(F.cross_entropy(output(), Y, label_smoothing=0.1).grad_fn).data
    assert data["options"]["label_smoothing"] == 0.1
    assert (data["kind"], data["terms"], data["factor"]) == ("cross_entropy", [], 1.0)


def test_the_factor_of_a_scaler_is_none_of_the_loss():
    root = (F.mse_loss(output(), T) * torch.tensor(65536.0)).grad_fn
    assert analyse(root, scaled=True).data["factor"] == 1.0


def test_the_same_loss_is_known_again_by_its_steps():
    def loss() -> torch.Tensor:
        return F.mse_loss(output().tanh(), T) + LAYER.weight.square().sum()

    analysis = analyse(loss().grad_fn)
    again = loss().grad_fn
    assert type(again) is analysis.root
    assert all(follow(again, steps) is not None for steps in analysis.steps)
    other = (F.mse_loss(output(), T) + LAYER.weight.square().sum()).grad_fn
    assert not all(follow(other, steps) is not None for steps in analysis.steps)


def test_shapes_and_what_was_broadcast():
    x, y = torch.ones(4, 1), torch.ones(4)
    operands = Operands(x, y, prediction_shape=(4, 1), target_shape=(4,), result_shape=(4, 4))
    data = shapes(operands)
    assert (data["broadcast"], data["broadcast_to"]) == (True, [4, 4])
    assert data["prediction"] == {"shape": [4, 1], "dtype": "float32", "space": "values"}
    assert data["target"] == {"shape": [4], "dtype": "float32"}


def test_classes_and_their_scores_are_not_broadcast():
    operands = Operands(
        T, Y, classes=1, prediction_shape=(4, 3), target_shape=(4,), result_shape=(4, 3)
    )
    assert shapes(operands)["broadcast"] is False
    assert shapes(Operands())["broadcast"] is False
