"""The rule `learning-rate-too-low`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import layers, stuck
from tests.doctor.synthetic import Made


def updates(ratio: float, gradient: float = 1.0) -> Made:
    return stuck().loop("update_ratio", ratio).loop("grad_norm", gradient).rate(*[1e-6] * 200)


def test_updates_that_change_next_to_nothing() -> None:
    (finding,) = updates(4e-5).found("learning-rate-too-low")
    assert "by 4e-05 of their size (1e-3 is usual)" in finding.message
    assert "The learning rate is 1e-06." in finding.message
    assert finding.fix.startswith("Raise the learning rate; 2.5e-05 would")
    assert not updates(5.1e-5).found("learning-rate-too-low")


def test_gradients_that_are_not_there() -> None:
    assert updates(1e-7, 1.1e-6).found("learning-rate-too-low")
    assert not updates(1e-7, 0.9e-6).found("learning-rate-too-low")


def test_gradients_that_fade_are_the_cause() -> None:
    assert not layers(updates(1e-7), a=1e-9, b=1e-5, c=1.0).found("learning-rate-too-low")
