"""Samples and divisors of losses, against the shapes and numbers that they were made with."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F

from nethook.watching.losses.record import analyse
from nethook.watching.losses.samples import UNKNOWN, Counting, length_of

X = torch.linspace(-1, 1, 35).reshape(7, 5)
CLASSES = torch.tensor([0, 1, 2, -100, 4, 0, -100])
WEIGHT = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])


def leaf() -> torch.Tensor:
    return (X.clone().requires_grad_() * 1.5).relu() + 0.1


def counted(root: torch.Tensor, scaled: bool = False):
    counting = analyse(root.grad_fn, scaled=scaled).counting
    divisor = counting.divisor(root.grad_fn, scaled=scaled)
    return counting.samples(root.grad_fn), divisor, counting.summed


@pytest.mark.parametrize(
    ("loss", "samples", "summed"),
    [
        (lambda x: F.cross_entropy(x, CLASSES.clamp(min=0)), 7, False),
        (lambda x: F.cross_entropy(x, CLASSES), 5, False),
        (lambda x: F.cross_entropy(x, CLASSES, reduction="sum"), 5, True),
        (lambda x: F.cross_entropy(x, CLASSES, WEIGHT), 1 + 2 + 3 + 5 + 1, False),
        (lambda x: F.cross_entropy(x, CLASSES, label_smoothing=0.1), 5, False),
        (lambda x: F.cross_entropy(x, X.softmax(1)), 7, False),
        (lambda x: F.cross_entropy(x[:6].reshape(2, 5, 3), CLASSES[:6].view(2, 3)), 5, False),
        (lambda x: F.nll_loss(x.log_softmax(1), CLASSES), 5, False),
        (lambda x: F.mse_loss(x, X), 7, False),
        (lambda x: F.mse_loss(x, X, reduction="sum"), 7, True),
        (lambda x: F.mse_loss(x, X, reduction="none").mean(), 7, False),
        (lambda x: F.l1_loss(x, X), 7, False),
        (lambda x: F.huber_loss(x, X), 7, False),
        (lambda x: F.binary_cross_entropy_with_logits(x, X.sigmoid()), 7, False),
        (lambda x: ((x - X) ** 2).mean(), 7, False),
        (lambda x: ((x - X) ** 2).sum(1).mean(), 7, False),
        (lambda x: ((x - X) ** 2).sum(), 7, True),
        (lambda x: x.mean(), 7, False),
    ],
)
def test_samples_of(loss, samples, summed):
    found, divisor, is_sum = counted(loss(leaf()))
    assert found == pytest.approx(samples)
    assert (divisor, is_sum) == (None, summed)


def test_the_samples_of_a_sequence_are_its_second_dimension():
    logs = torch.randn(20, 3, 6, requires_grad=True).log_softmax(2)
    targets, lengths = torch.randint(1, 6, (3, 5)), torch.tensor([5, 5, 5])
    loss = F.ctc_loss(logs, targets, torch.tensor([20, 20, 20]), lengths)
    assert counted(loss)[0] == 3


@pytest.mark.parametrize(
    ("change", "divisor"),
    [
        (lambda loss: loss / 4, 4),
        (lambda loss: loss * 0.25, 4),
        (lambda loss: loss / torch.tensor(512), 512),
        (lambda loss: loss / 2 / 3, 6),
        (lambda loss: 0.3 * loss, None),
        (lambda loss: loss * 3, None),
        (lambda loss: loss + 0.0, None),
    ],
)
def test_what_a_loss_was_divided_by(change, divisor):
    for loss in (F.cross_entropy(leaf(), CLASSES), F.mse_loss(leaf(), X, reduction="sum")):
        assert counted(change(loss))[1] == divisor
    assert counted(change(F.cross_entropy(leaf(), CLASSES, label_smoothing=0.2)))[1] == divisor


def test_the_factor_of_a_scaler_is_no_division():
    loss = F.cross_entropy(leaf(), CLASSES) / 8 * torch.tensor(1024.0)
    assert counted(loss, scaled=True)[1] == 8


def test_both_are_read_anew_in_every_pass():
    def loss(count: int, by: int) -> torch.Tensor:
        return F.cross_entropy(leaf()[:count], CLASSES[:count], reduction="sum") / by

    counting = analyse(loss(7, 5).grad_fn).counting
    for count, by, samples in ((7, 5, 5), (3, 30, 3), (4, 2, 3)):
        node = loss(count, by).grad_fn
        assert counting.samples(node) == samples
        assert counting.divisor(node, scaled=False) == by


def test_no_hook_of_the_script_runs_to_count_samples():
    ran = []
    with saved_tensors_hooks(lambda saved: saved, lambda saved: ran.append(saved) or saved):
        loss = F.cross_entropy(leaf(), CLASSES)
    assert counted(loss)[0] is None
    assert ran == []


def test_a_graph_that_is_gone_or_another_one_is_not_known():
    loss = F.cross_entropy(leaf(), CLASSES)
    counting = analyse(loss.grad_fn).counting
    node = loss.grad_fn
    loss.backward()
    assert counting.samples(node) is None
    assert counting.samples(leaf().grad_fn) is None
    divided = analyse(
        ((F.cross_entropy(leaf(), CLASSES) * 2).reshape(1).sum() / 4).grad_fn
    ).counting
    assert divided.divisor(leaf().sum().grad_fn, scaled=False) is UNKNOWN
    assert divided.divisor(torch.ones(2, requires_grad=True).sum().grad_fn, scaled=True) is None
    assert Counting().samples(leaf().grad_fn) is None


@pytest.mark.parametrize(
    ("args", "kwargs", "length"),
    [
        ((X,), {}, 7),
        (("x", X[:2]), {}, 2),
        ((), {"labels": X[:3]}, 3),
        ((torch.tensor(1.0),), {}, None),
        ((), {}, None),
    ],
)
def test_the_length_of_what_a_model_was_given(args, kwargs, length):
    assert length_of(args, kwargs) == length
