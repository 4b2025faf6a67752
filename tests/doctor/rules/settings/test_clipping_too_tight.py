"""The rule `clipping-too-tight`: when it reports, and when it does not."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.doctor.ill import stuck
from tests.doctor.synthetic import Made


def clipped(before: float, after: Any) -> Made:
    return (
        stuck().loop("grad_norm_unclipped", before).loop("grad_norm", after).loop("clip_limit", 0.1)
    )


def test_steps_that_lose_nine_tenths() -> None:
    (finding,) = clipped(3.0, 0.29).found("clipping-too-tight")
    assert finding.message.startswith("100% of the steps are clipped to a tenth or less")
    assert finding.fix.startswith("Raise the limit, to about 3:")
    assert not clipped(3.0, 0.31).found("clipping-too-tight")


def test_a_few_steps_that_are_not_clipped() -> None:
    some = np.full(200, 0.1)
    some[:39] = 3.0
    assert clipped(3.0, some).found("clipping-too-tight")
    some[:41] = 3.0
    assert not clipped(3.0, some).found("clipping-too-tight")


def test_gradients_that_explode_are_not_clipped_too_tightly() -> None:
    assert clipped(4.9, 0.1).found("clipping-too-tight")
    assert not clipped(5.1, 0.1).found("clipping-too-tight")  # weights of norm 1


def test_the_loss_of_ppo_is_clipped_hard_by_default() -> None:
    critic = {"kind": "mse", "chain": ["MseLoss", "View", "Addmm"]}
    surrogate = {"kind": "other", "chain": ["Minimum"]}
    other = {"kind": "other", "chain": ["Mul"]}
    for terms, said in (([critic, surrogate], False), ([critic, other], True), ([], True)):
        made = clipped(3.0, 0.29).record(kind="mse", floored=True, terms=terms)
        assert bool(made.found("clipping-too-tight")) is said
