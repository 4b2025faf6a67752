"""Networks that were trained before the run."""

from __future__ import annotations

from nethook.doctor.signals.earlier import was_trained_before
from tests.doctor.ill import bad, stuck, well
from tests.doctor.synthetic import flat


def test_weights_that_were_loaded() -> None:
    made = well()
    assert not was_trained_before(made.history())
    made.info["loaded"] = True
    assert was_trained_before(made.history())


def test_a_loss_that_begins_far_below_a_guess() -> None:
    assert was_trained_before(bad(flat(200, 0.3)).history())
    assert not was_trained_before(stuck().history())
