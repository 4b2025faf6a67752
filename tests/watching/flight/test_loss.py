"""Why a loss is not finite, and computing it again from what was kept."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.watching.flight.loss import LossKeeper, cause_of, compute_again, keep_loss
from nethook.watching.losses.marks import Marks

NAN, INF = float("nan"), float("inf")


def output(*shape: int) -> torch.Tensor:
    out = nn.Linear(4, shape[-1])(torch.randn(*shape[:-1], 4))
    Marks().put(out.grad_fn, "", ())
    return out


LABELS = torch.tensor([0, 1, 2])
FUNCTIONS = [
    lambda out: F.cross_entropy(out, LABELS),
    lambda out: F.cross_entropy(out, LABELS, reduction="sum"),
    lambda out: F.cross_entropy(out, LABELS, weight=torch.tensor([1.0, 2.0, 3.0])),
    lambda out: F.cross_entropy(out, LABELS) * 4 / 8,
    lambda out: F.mse_loss(out, torch.ones(3, 3)),
    lambda out: F.huber_loss(out, torch.ones(3, 3)),
    lambda out: F.binary_cross_entropy_with_logits(out, torch.ones(3, 3)),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_loss_is_computed_again_from_what_was_kept(function):
    out = output(3, 3)
    loss = function(out)
    kept = keep_loss([loss])
    assert kept
    torch.testing.assert_close(compute_again(kept, out), loss)
    other = torch.randn(3, 3)
    torch.testing.assert_close(compute_again(kept, other), function(other))


@pytest.mark.parametrize(
    "function",
    [
        lambda out: out.sum(),
        lambda out: F.mse_loss(out.relu(), torch.ones(3, 3)),
        lambda out: F.mse_loss(out, torch.ones(3, 3)) + out.sum(),
    ],
)
def test_other_losses_are_not_kept(function):
    assert keep_loss([function(output(3, 3))]) == {}
    assert keep_loss([]) == {}


def test_a_keeper_gives_the_same_without_asking_again():
    keeper = LossKeeper()
    assert keeper.keep_plainly([output(3, 3).sum()]) == ({}, None)
    for _ in range(3):
        target = torch.randn(3, 3)
        loss = F.mse_loss(output(3, 3), target)
        kept = keeper.keep([loss])
        assert torch.equal(kept["target"], target)
        assert kept["function"] == "mse_loss"
    kept, apart = keeper.keep_plainly([loss])
    assert kept["target"] is None
    assert apart is target
    assert keeper.keep([torch.ones(())]) == {}


def test_only_loss_functions_are_called():
    with pytest.raises(ValueError, match="not a loss function: 'system'"):
        compute_again({"function": "system", "target": torch.ones(1)}, torch.ones(1))


def test_a_log_of_zero_behind_a_finite_output():
    out = output(2, 3)
    cause = cause_of((torch.log(out * 0).mean()).grad_fn)
    assert cause.operation == "Log"
    assert "log of 0" in cause.reason
    assert cause.chain


def test_targets_that_are_not_finite():
    cause = cause_of(F.mse_loss(output(2, 3), torch.full((2, 3), NAN)).grad_fn)
    assert (cause.prediction_finite, cause.target_finite) == (True, False)


def test_an_output_that_is_not_finite():
    out = nn.Linear(4, 3)(torch.full((2, 4), INF))
    Marks().put(out.grad_fn, "", ())
    cause = cause_of(F.mse_loss(out, torch.ones(2, 3)).grad_fn)
    assert (cause.prediction_finite, cause.target_finite) == (False, True)


def test_a_scale_that_is_too_large_is_no_fault():
    out = output(2, 3)
    scaled = cause_of((F.mse_loss(out, torch.ones(2, 3)) * torch.tensor(INF)).grad_fn)
    assert scaled.only_scaled
    assert not cause_of(F.mse_loss(out, torch.ones(2, 3)).grad_fn).only_scaled
