"""The rule `bad-init-scale`: when it reports, and when it does not."""

from __future__ import annotations

import pytest

from nethook.doctor.rules import bad_init_scale
from tests.doctor.ill import scales, stuck


def test_a_signal_that_grows() -> None:
    (finding,) = scales(stuck(), 10.0, 31.0, 1.0).found("bad-init-scale")
    assert finding.sites == ("fc1",)
    assert finding.evidence["change of the signal over depth"].value == pytest.approx(31.0)
    assert finding.message.startswith("weights start too large: at step 0 the signal is 31 times")
    assert not scales(stuck(), 10.0, 29.0, 1.0).found("bad-init-scale")


def test_a_signal_that_shrinks_before_the_last_layer() -> None:
    (finding,) = scales(stuck(), 1.0, 1 / 31, 1.0).found("bad-init-scale")
    assert "31 times as small at `fc1`" in finding.message
    assert not scales(stuck(), 1.0, 1.0, 1e-4).found("bad-init-scale")  # small on purpose


def test_what_the_pre_flight_check_reports() -> None:
    signal = bad_init_scale.signal_before_training("fc1", 45.0)
    assert "too large: the signal at `fc1` is 45 times" in signal.message
    assert signal.evidence["signal by what it should be"].threshold == 30
    loss = bad_init_scale.loss_before_training(23.0, 2.3)
    assert "the first loss is 23, where 2.3 is usual" in loss.message
    assert loss.evidence["first loss by the usual one"].value == pytest.approx(10.0)
