"""The rule `oscillating-loss`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.ill import swinging
from tests.doctor.synthetic import Made


def test_updates_that_undo_each_other() -> None:
    made = swinging()
    (finding,) = made.series("fc.weight", "update_cosine", mean=-0.31).found("oscillating-loss")
    assert "successive updates undo each other (cosine -0.31)" in finding.message
    made.series("fc.weight", "update_cosine", mean=-0.29)
    assert not made.found("oscillating-loss")


def test_a_loss_that_swings_to_the_last_and_ends_low_by_chance() -> None:
    swings = np.exp(2.5 * np.sin(np.arange(200) / 6)) * 5
    losses = np.r_[21.0, swings[:190], np.full(9, 0.4)]
    made = Made().loss(losses).record(kind="mse", floored=True)
    made.parameter("w").series("w", "update_cosine", mean=-0.99)
    assert made.found("oscillating-loss")
    made.series("w", "update_cosine", mean=-0.1)
    assert not made.found("oscillating-loss")


def test_a_loss_that_follows_a_target_which_moves_does_not_oscillate() -> None:
    swings = np.exp(np.sin(np.arange(200) / 6)) * 0.3
    made = Made().loss(swings).record(kind="smooth_l1", floored=True)
    made.parameter("w").series("w", "update_cosine", mean=0.2)
    assert made.found("oscillating-loss")
    made.series("w", "update_cosine", mean=0.98)  # as in Q-learning, with a target network
    assert not made.found("oscillating-loss")
