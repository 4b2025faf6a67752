"""The rule `vanishing-gradient`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.doctor.rules.symptoms import vanishing_gradient
from tests.doctor.ill import layers, stuck


def test_a_thousandth_of_the_last_layer() -> None:
    (finding,) = layers(stuck(), a=9e-4, b=0.03, c=1.0).found("vanishing-gradient")
    assert finding.sites == ("a",)
    assert "1e+03 times smaller at `a` than at `c`: over 3 layers" in finding.message
    assert finding.evidence["first layer by last"].value == pytest.approx(9e-4)
    assert not layers(stuck(), a=1.1e-3, b=0.03, c=1.0).found("vanishing-gradient")


def test_two_layers_are_too_few() -> None:
    assert not layers(stuck(), a=1e-9, b=1.0).found("vanishing-gradient")


def test_a_profile_that_does_not_fall_layer_by_layer() -> None:
    assert not layers(stuck(), a=1e-4, b=1.0, c=0.9, d=0.8).found("vanishing-gradient")


def test_what_the_pre_flight_check_reports() -> None:
    finding = vanishing_gradient.before_training("a", "z", 1e-4, 7)
    assert "1e+04 times smaller at `a` than at `z`, over 7 layers" in finding.message
    assert finding.evidence["first layer by last"].value == 1e-4


def test_a_gradient_that_was_lost_on_the_way_is_a_symptom() -> None:
    made = layers(stuck(), a=1.0, b=1.0, c=1.0)
    made.series("a", "grads", rms=np.r_[np.full(60, 0.5), np.full(140, 1e-8)])
    made.series("b", "grads", rms=np.r_[np.full(60, 0.7), np.full(140, 1e-4)])
    (finding,) = made.found("vanishing-gradient")
    assert finding.first_step == 60
    assert "Before step 60 it was not so: this is a symptom." in finding.message
    assert "ReLU" not in finding.fix
