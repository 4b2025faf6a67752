"""Weights whose gradient is nothing but zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nethook.doctor.signals.zero_gradients import WINDOWS, always_zero
from tests.doctor.synthetic import Made


def found(share: Any, steps: int = 200, other: float = 0.1, **facts: Any) -> list[str]:
    """Addresses of the weights that count, of one with this share of zeros and another."""
    made = Made(steps).parameter("a.weight", **facts).parameter("b.weight")
    made.series("a.weight", "param_grads", zero_share=share)
    made.series("b.weight", "param_grads", zero_share=other)
    return [parameter.address for parameter in always_zero(made.history())]


def test_zeros_from_the_first_measurement_to_the_last() -> None:
    assert found(1.0) == ["a.weight"]


@pytest.mark.parametrize("at", [0, 100, 199])
def test_one_step_with_a_gradient_is_enough(at: int) -> None:
    share = np.ones(200)
    share[at] = 0.99
    assert found(share) == []


@pytest.mark.parametrize(
    "facts",
    [{"shape": [16]}, {"shape": []}, {"groups": []}, {"with_grad": 0}],
    ids=["a bias", "a scale", "of no optimizer", "without any gradient"],
)
def test_what_does_not_count(facts: dict[str, Any]) -> None:
    assert found(1.0, **facts) == []


def test_a_network_in_which_nothing_is_alive_is_another_fault() -> None:
    assert found(1.0, other=1.0) == []


def test_few_measurements_do_not_say_never() -> None:
    assert found(1.0, steps=WINDOWS - 1) == []
