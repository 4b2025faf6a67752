"""What kind of loss a term is, and which tensors went into it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.watching.losses.graph import find_output, terms_of
from nethook.watching.losses.kinds import (
    LOG_PROBABILITIES,
    LOGITS,
    made_of,
    operands_of,
    unbroadcast,
)
from nethook.watching.losses.marks import Marks

WEIGHT = nn.Parameter(torch.ones(3))


def output() -> torch.Tensor:
    torch.manual_seed(0)
    out = nn.Linear(2, 3)(torch.randn(4, 2))
    Marks().put(out.grad_fn, "", ())
    return out


def first(loss: torch.Tensor):
    term = terms_of(loss.grad_fn)[0]
    find_output(term)
    return term, made_of(term)


Y, T = torch.tensor([0, 1, 2, 0]), torch.rand(4, 3)


@pytest.mark.parametrize(
    ("function", "kind", "reduction", "by_hand"),
    [
        (lambda out: F.cross_entropy(out, Y), "cross_entropy", "mean", False),
        (lambda out: F.cross_entropy(out, Y, reduction="sum"), "cross_entropy", "sum", False),
        (lambda out: F.nll_loss(out, Y), "nll", "mean", False),
        (lambda out: F.mse_loss(out, T), "mse", "mean", False),
        (lambda out: F.l1_loss(out, T), "l1", "mean", False),
        (lambda out: F.smooth_l1_loss(out, T), "smooth_l1", "mean", False),
        (lambda out: F.binary_cross_entropy_with_logits(out, T), "bce_with_logits", "mean", False),
        (lambda out: ((out - T) ** 2).mean(), "mse", "mean", True),
        (lambda out: ((out - T) * (out - T)).sum(), "other", "sum", True),
        (lambda out: (out**2).sum(), "squares", "sum", True),
        (lambda out: ((out - T) ** 2).mean().sqrt(), "rmse", "mean", True),
        (lambda out: F.mse_loss(out, T).sqrt(), "rmse", "mean", False),
        (lambda out: out.mean(), "linear", "mean", False),
        (lambda out: -out.mean(), "linear", "mean", False),
        (lambda out: (out - 1).relu().mean(), "hinge", "mean", False),
        (lambda out: out.norm(), "norm", None, True),
        (lambda out: WEIGHT.square().sum(), "penalty", "sum", True),
        (lambda out: WEIGHT.sum(), "penalty", "sum", True),
        (lambda out: out.tanh().exp().mean(), "other", "mean", True),
    ],
)
def test_the_kind(function, kind, reduction, by_hand):
    _, made = first(function(output()))
    assert (made.kind, made.reduction, made.by_hand) == (kind, reduction, by_hand)


def test_probabilities_as_targets():
    target = T / T.sum(1, keepdim=True)
    _, made = first(F.cross_entropy(output(), target))
    assert (made.kind, made.reduction) == ("cross_entropy", "mean")
    assert made.options == {"target": "probabilities"}


def test_options_are_those_of_the_call():
    _, made = first(F.cross_entropy(output(), Y, ignore_index=-100, weight=torch.ones(3)))
    assert made.options == {"ignore_index": -100, "weight": True}
    _, made = first(F.huber_loss(output(), T, delta=0.5))
    assert made.options["delta"] == 0.5


def test_a_model_that_ends_in_a_log_softmax_has_nll():
    logs = F.log_softmax(nn.Linear(2, 3)(torch.randn(4, 2)), 1)
    Marks().put(logs.grad_fn, "", ())
    assert first(F.nll_loss(logs, Y))[1].kind == "nll"
    assert first(F.nll_loss(F.log_softmax(output(), 1), Y))[1].kind == "cross_entropy"


def test_prediction_and_target_are_those_of_the_call():
    out = output()
    operands = operands_of(*first(F.mse_loss(out, T)))
    assert torch.equal(operands.prediction, out)
    assert torch.equal(operands.target, T)
    operands = operands_of(*first(F.cross_entropy(out, Y)))
    assert operands.space == LOG_PROBABILITIES
    torch.testing.assert_close(operands.prediction, F.log_softmax(out, 1).detach())
    assert torch.equal(operands.target, Y)
    assert operands.classes == 1
    operands = operands_of(*first(F.binary_cross_entropy_with_logits(out, T)))
    assert operands.space == LOGITS


def test_a_shape_before_it_was_broadcast():
    assert unbroadcast(torch.ones(4, 1).expand(4, 3)) == (4, 1)
    assert unbroadcast(torch.ones(4, 3)) == (4, 3)
