"""Runs that lost what they had learnt, and what changed before."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.doctor.signals.divergence import changes_before, divergence
from tests.doctor.ill import lost, stuck, well
from tests.doctor.synthetic import Made, falling, flat


def test_when_and_how_far() -> None:
    found = divergence(lost().history())
    assert found is not None
    assert found.onset == 120
    assert 90 < found.best_step < 120
    assert found.best == pytest.approx(0.1, abs=0.05)
    assert found.end == pytest.approx(2.4, abs=0.1)


@pytest.mark.parametrize("made", [well, stuck], ids=["learns", "never learnt"])
def test_nothing_is_lost(made: type[Made]) -> None:
    assert divergence(made().history()) is None


def test_of_noise_around_a_slow_fall_nothing_is_said() -> None:
    course = falling(200, 2.3, 1.0, noise=0.6)
    assert divergence(Made().loss(course).record(floored=True).history()) is None


def test_what_changed_the_most_comes_first() -> None:
    rates = [0.01] * 110 + [0.02] * 90
    made = lost(*rates).event("mode", 118).event("loss-scale", 30)
    made.series("", "inputs", rms=np.r_[np.ones(119), np.full(81, 250.0)])
    history = made.history()
    found = divergence(history)
    assert found is not None
    changes = changes_before(history, found)
    assert [change.step for change in changes] == [119, 110, 118]
    assert changes[0].factor == pytest.approx(250)
    assert changes[1].factor == pytest.approx(2)


def test_a_rate_that_fell_explains_nothing() -> None:
    history = lost(*np.geomspace(0.1, 1e-4, 200)).history()
    found = divergence(history)
    assert found is not None
    assert changes_before(history, found) == []


def test_a_loss_that_is_still_far_above_its_start_has_not_recovered() -> None:
    up = np.r_[falling(120), np.geomspace(500, 6, 80)]
    assert divergence(Made().loss(up).record(floored=True).history()) is not None
    down = np.r_[falling(120), np.geomspace(2.3, 1.3, 80)]
    assert divergence(Made().loss(down).record(floored=True).history()) is None
    assert divergence(Made().loss(flat(200, 0.1)).record(floored=True).history()) is None
