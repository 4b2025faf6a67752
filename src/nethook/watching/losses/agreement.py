"""Whether two targets of one loss speak of the same samples: labels, and a teacher's answers.

A student learns from both. Where a teacher's answers were collected in another order than the
samples are in now, they agree with the labels no more often than by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from nethook.hooks.modes import unrecorded
from nethook.stats.shards import is_shared
from nethook.watching.losses.graph import Term
from nethook.watching.losses.kinds import Made, Operands, operands_of

NAMES: Final = ("teacher.agreement", "teacher.chance", "teacher.rows")
"""Share of samples at which both name the same class, what that would be by chance, of how many."""
MOST: Final = 1 << 12
"""Samples that are looked at."""


def agreement_numbers(terms: Sequence[tuple[Term, Made]]) -> torch.Tensor | None:
    """Three numbers, as `NAMES` has them; None where a loss has not both kinds of targets."""
    if len(terms) < 2:
        return None
    given = [operands_of(term, made) for term, made in terms if made.kind in _OF_CLASSES]
    labels = next((one for one in given if _is_of_labels(one)), None)
    answers = next((one for one in given if _is_of_answers(one)), None)
    if labels is None or answers is None:
        return None
    return _compared(labels, answers)


_OF_CLASSES: Final = ("cross_entropy", "nll", "kl_div")


def _is_known(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and tensor.layout is torch.strided and not is_shared(tensor)


def _is_of_labels(operands: Operands) -> bool:
    target = operands.target
    return (
        _is_known(target)
        and target is not None
        and target.dim() == 1
        and not target.is_floating_point()
        and operands.prediction is not None
        and operands.prediction.dim() == 2
    )


def _is_of_answers(operands: Operands) -> bool:
    target = operands.target
    return (
        _is_known(target)
        and target is not None
        and target.dim() == 2
        and target.is_floating_point()
        and operands.classes == 1
    )


@unrecorded
def _compared(labels: Operands, answers: Operands) -> torch.Tensor | None:
    wanted, said = labels.target, answers.target
    assert wanted is not None
    assert said is not None
    assert labels.prediction is not None
    if len(wanted) != len(said) or labels.prediction.shape[1] != said.shape[1]:
        return None
    if wanted.device != said.device:
        return None
    wanted, classes = wanted[:MOST], said[:MOST].argmax(1)
    every = torch.arange(said.shape[1], device=said.device)
    shares = [(one[:, None] == every).float().mean(0) for one in (wanted, classes)]
    return torch.stack([
        (wanted == classes).float().mean(),
        (shares[0] * shares[1]).sum(),
        torch.full_like(shares[0].sum(), len(wanted)),
    ])  # fmt: skip
