"""Labels and a teacher's answers in one loss: how often both name the same class."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from nethook.watching.losses.agreement import agreement_numbers
from nethook.watching.losses.record import analyse

ROWS, CLASSES = 600, 4


def distilled(order: torch.Tensor, temperature: float = 2.0) -> list[float] | None:
    torch.manual_seed(0)
    labels = torch.randint(CLASSES, (ROWS,))
    teacher = 5.0 * F.one_hot(labels, CLASSES).float() + torch.randn(ROWS, CLASSES)
    out = torch.randn(ROWS, CLASSES, requires_grad=True) * 1.0
    soft = F.softmax(teacher[order] / temperature, 1)
    student = F.log_softmax(out / temperature, 1)
    loss = 3.8 * F.kl_div(student, soft, reduction="batchmean") + 0.1 * F.cross_entropy(out, labels)
    assert loss.grad_fn is not None
    found = agreement_numbers(analyse(loss.grad_fn, scaled=False).terms)
    return None if found is None else found.tolist()


def test_answers_to_the_same_samples() -> None:
    agreement, chance, rows = distilled(torch.arange(ROWS)) or [0.0] * 3
    assert agreement > 0.98
    assert chance == pytest.approx(0.25, abs=0.02)
    assert rows == ROWS


def test_answers_to_other_samples() -> None:
    agreement, chance, _ = distilled(torch.randperm(ROWS)) or [0.0] * 3
    assert agreement == pytest.approx(chance, abs=0.06)


def test_losses_with_one_kind_of_target() -> None:
    out = torch.randn(8, CLASSES, requires_grad=True) * 1.0
    labels = torch.randint(CLASSES, (8,))
    alone = F.cross_entropy(out, labels)
    both = alone + F.cross_entropy(out * 2, labels)
    for loss in (alone, both):
        assert loss.grad_fn is not None
        assert agreement_numbers(analyse(loss.grad_fn, scaled=False).terms) is None
