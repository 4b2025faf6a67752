"""The rule `missing-zero-grad`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.synthetic import Made


def test_three_steps_to_the_end() -> None:
    (finding,) = Made().loop("old_gradients", [0] * 197 + [1] * 3).found("missing-zero-grad")
    assert finding.message.startswith("3 of 3 steps used gradients")
    assert finding.first_step == 197
    assert finding.fix == "Call optimizer.zero_grad() once per step, before loss.backward()."
    assert not Made().loop("old_gradients", [0] * 198 + [1] * 2).found("missing-zero-grad")


def test_every_second_step() -> None:
    assert Made().loop("old_gradients", [1, 0] * 100).found("missing-zero-grad")
    assert not Made(201).loop("old_gradients", [1, 0, 0] * 67).found("missing-zero-grad")


def test_gradients_that_are_cleared_now_and_then() -> None:
    old = Made().loop("old_gradients", np.tile(np.r_[0.0, np.ones(39)], 5))
    (finding,) = old.loop("zero_grads", np.tile(np.r_[1.0, np.zeros(39)], 5)).found(
        "missing-zero-grad"
    )
    assert "they are cleared 4 times only" in finding.message
