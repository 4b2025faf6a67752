"""The rule `adam-instability`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.doctor.ill import spikes, stuck


def test_updates_that_spike_alone() -> None:
    (finding,) = spikes(stuck(), 8).found("adam-instability")
    assert finding.evidence["spikes"].value == 5
    assert finding.evidence["update against gradient"].value == pytest.approx(8.0)
    assert (finding.first_step, finding.last_step) == (48, 176)
    assert not spikes(stuck(), 7.9).found("adam-instability")


def test_spikes_that_the_gradients_have_too() -> None:
    gradient = np.ones(200)
    gradient[48::32] = 50
    assert not spikes(stuck(), 50).loop("grad_norm", gradient).found("adam-instability")


def test_an_optimizer_without_second_moments() -> None:
    update = np.full(200, 1e-3)
    update[48::32] *= 50
    made = stuck().parameter("w").loop("update_ratio", update).loop("grad_norm", 1.0)
    assert not made.found("adam-instability")
