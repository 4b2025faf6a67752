"""The summands of a loss, their values, and what a constant answer would score."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from nethook.watching.losses.kept import Kept
from nethook.watching.losses.parts import MOST, described, part_numbers, parts_of, value_of
from nethook.watching.losses.record import analyse
from tests.watching.losses.outputs import output

torch.manual_seed(0)
LABELS = torch.tensor([0, 1, 2, 0])
NUMBERS = torch.randn(4, 3)
SHARES = torch.rand(4, 3)

VALUES = {
    "cross entropy": lambda out: F.cross_entropy(out, LABELS),
    "weighted": lambda out: F.cross_entropy(out, LABELS, torch.tensor([1.0, 2, 3])),
    "summed": lambda out: F.cross_entropy(out, LABELS, reduction="sum"),
    "left out": lambda out: F.cross_entropy(out, LABELS, ignore_index=0),
    "mse": lambda out: F.mse_loss(out, NUMBERS),
    "mse summed": lambda out: F.mse_loss(out, NUMBERS, reduction="sum"),
    "smooth l1": lambda out: F.smooth_l1_loss(out, NUMBERS, beta=0.3),
    "huber": lambda out: F.huber_loss(out, NUMBERS, delta=0.3),
    "bce": lambda out: F.binary_cross_entropy(out.sigmoid(), SHARES),
    "bce of logits": lambda out: F.binary_cross_entropy_with_logits(
        out, SHARES, pos_weight=torch.tensor([1.0, 2, 3])
    ),
    "squares": lambda out: (out - NUMBERS).pow(2).mean(),
    "absolute": lambda out: (out - NUMBERS).abs().sum(),
    "mean of the output": lambda out: out.mean(),
    "exponentials": lambda out: out.exp().sum() / 7,
    "norm": lambda out: out.norm(),
    "masked": lambda out: (F.mse_loss(out, NUMBERS, reduction="none") * SHARES).sum(),
    "sum of both": lambda out: (out.exp() + out.pow(2)).mean(),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_computed_anew(name):
    out = output()
    kept = Kept()
    kept.returned(out)
    loss = VALUES[name](out)
    assert value_of(loss.grad_fn, kept).item() == pytest.approx(loss.item(), rel=1e-5)


def test_what_is_not_kept_is_not_known():
    out = output()
    assert value_of((1 + out).mean().grad_fn, Kept()) is None
    assert value_of(out.sin().mean().grad_fn, Kept()) is None


def parts(loss: torch.Tensor, *outputs: torch.Tensor, scale: float = 1.0):
    kept = Kept()
    for out in outputs:
        kept.returned(out)
    analysis = analyse(loss.grad_fn)
    found = parts_of(loss.grad_fn, scale)
    return found, described(found, analysis.terms), part_numbers(found, analysis.terms, kept)


def test_summands_as_they_were_written():
    first, second = output(), output()
    mse, entropy = F.mse_loss(first, NUMBERS), F.cross_entropy(second, LABELS)
    found, plain, numbers = parts(mse - 0.5 * entropy, first, second)
    assert [part.factor for part in found] == [1.0, -0.5]
    assert [part["kinds"] for part in plain] == [["mse"], ["cross_entropy"]]
    assert numbers[0].tolist() == pytest.approx([mse.item(), entropy.item()])


def test_a_part_of_several_operations_is_one():
    """A KL divergence has a constant in it, which nobody keeps: its value is left open."""
    out, mu, logvar = output(), output(), output()
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    _, plain, numbers = parts(F.mse_loss(out, NUMBERS) + kl, out, mu, logvar)
    assert [len(part["kinds"]) for part in plain] == [1, 3]
    assert math.isnan(numbers[0][1])
    assert numbers[1][0].item() == pytest.approx(NUMBERS.var(0).mean().item())


def test_stacked_and_scaled_losses():
    out = output()
    losses = [F.mse_loss(out, NUMBERS), F.cross_entropy(out, LABELS)]
    for joined, by in ((torch.stack(losses).sum(), 1.0), (torch.stack(losses).mean(), 0.5)):
        assert [part.factor for part in parts(joined, out)[0]] == [by, by]
    assert [part.factor for part in parts(8 * (losses[0] + losses[1]), out, scale=8.0)[0]] == [1, 1]


def test_a_single_loss_has_no_parts_nor_has_one_over_time():
    out = output()
    assert parts_of(F.mse_loss(out, NUMBERS).grad_fn) == []
    assert parts_of((0.1 * F.mse_loss(out, NUMBERS)).grad_fn) == []
    steps = sum(F.mse_loss(out, NUMBERS) for _ in range(MOST + 1))
    assert parts_of(steps.grad_fn) == []


def test_what_a_constant_answer_scores():
    out = output()
    many = torch.randint(0, 3, (4,))
    pairs = F.cross_entropy(out, many) + F.mse_loss(out, NUMBERS)
    constants = parts(pairs, out)[2][1]
    shares = torch.bincount(many, minlength=3) / 4
    entropy = torch.special.entr(shares).sum() + ((shares > 0).sum() - 1) / 8
    assert constants.tolist() == pytest.approx([entropy.item(), NUMBERS.var(0).mean().item()])
    column = output((4, 1))
    binary = torch.tensor([[1.0], [0], [0], [0]])
    both = F.binary_cross_entropy_with_logits(column, binary) + F.l1_loss(out, NUMBERS)
    constants = parts(both, out, column)[2][1]
    surprise = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75)) + 1 / 8
    assert constants[0].item() == pytest.approx(surprise)
    assert math.isnan(constants[1])


def test_summands_that_are_added_sample_by_sample():
    out, code = output(), output()
    shares = (SHARES > 0.5).float()
    bce = F.binary_cross_entropy(out.sigmoid(), shares, reduction="none").mean(dim=1)
    size = code.pow(2).sum(dim=1)
    for loss, by in (((bce + size).mean(), 1.0), ((bce - 0.5 * size).mean(), 1.0)):
        found, plain, numbers = parts(by * loss, out, code)
        assert [part["kinds"][0] for part in plain] == ["bce", "squares"]
        assert numbers[0][0].item() == pytest.approx(bce.mean().item(), rel=1e-5)
        assert len(found) == 2
    mean = shares.mean(0)
    each = torch.special.entr(torch.stack([mean, 1 - mean])).sum(0) + (mean * (1 - mean) > 0) / 8
    assert parts((bce + size).mean(), out, code)[2][1][0].item() == pytest.approx(
        each.mean().item(), rel=1e-5
    )


def test_an_error_by_element_is_one_part():
    out, mu, logvar = output(), output(), output()
    assert parts_of((out - NUMBERS).mean().grad_fn) == []
    assert parts_of((mu.pow(2) + logvar.exp()).mean().grad_fn) == []


def test_a_constant_answer_to_a_sum():
    out = output()
    both = F.mse_loss(out, NUMBERS, reduction="sum") + out.pow(2).mean()
    constant = parts(both, out)[2][1][0].item()
    assert constant == pytest.approx(NUMBERS.var(0).mean().item() * NUMBERS.numel())
