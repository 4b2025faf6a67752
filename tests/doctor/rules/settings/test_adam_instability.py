"""The rule `adam-instability`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nethook.runs.names import MADE_BY_OPTIMIZER
from tests.doctor.ill import spikes, stuck
from tests.doctor.synthetic import Made


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


def half(dtype: str = "float16", eps: float = 1e-8, reason: str = MADE_BY_OPTIMIZER) -> Made:
    made = stuck().parameter("a.weight", dtype=dtype)
    made.event("groups", optimizer="0", line="train.py:5", groups=[{"eps": eps}])
    return made.event("non-finite", 1, "a.weight", reason=reason)


def test_an_epsilon_that_is_zero_in_half_precision() -> None:
    (finding,) = half().found("adam-instability")
    assert finding.severity == "error"
    assert "eps=1e-08 of the optimizer is zero" in finding.message
    assert (finding.first_step, finding.lines) == (1, ("train.py:5",))


@pytest.mark.parametrize("eps", [1e-8, 2.9e-8, 3.0e-8, 1e-7])
def test_the_limit_is_that_of_the_type(eps: float) -> None:
    is_zero = torch.tensor(eps, dtype=torch.float16).item() == 0
    assert bool(half(eps=eps).found("adam-instability")) is is_zero


def test_other_causes_of_a_nan() -> None:
    assert not half(dtype="float32").found("adam-instability")
    assert not half(dtype="bfloat16").found("adam-instability")
    assert not half(eps=1e-4).found("adam-instability")
    assert not half(reason="log of 0").found("adam-instability")
    elsewhere = half()
    elsewhere.events = [event for event in elsewhere.events if event.kind != "non-finite"]
    assert not elsewhere.found("adam-instability")


def leaving(end: float, repeated: float = 1.0, steps: int = 2000) -> Made:
    course = np.r_[
        np.geomspace(1.0, 1e-12, steps // 2), np.geomspace(1e-12, end, steps - steps // 2)
    ]
    made = Made(steps).loss(course).record(kind="mse").batch("repeated", repeated)
    return made.parameter("a.weight").series("a.weight", "second_moment", mean=1e-3)


def test_a_loss_that_leaves_its_minimum() -> None:
    (finding,) = leaving(1e-5).found("adam-instability")
    assert finding.severity == "info"
    assert "was down at 1e-12, is up at 1e-05 again" in finding.message
    assert not leaving(1e-9).found("adam-instability")
    assert not leaving(1e-5, repeated=0.0).found("adam-instability")
    assert not leaving(1e-5, steps=900).found("adam-instability")
