"""The rule `evaluation-scale`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.ill_losses import scaled
from tests.doctor.synthetic import Made, falling


def test_inputs_that_are_not_normalised_in_evaluation() -> None:
    (finding,) = scaled((0.0, 1.0), (0.76, 0.07)).found("evaluation-scale")
    assert finding.severity == "warning"  # it is gross
    assert "mean 0 and spread 1 in training, and mean 0.76 and spread 0.07" in finding.message
    assert finding.first_step == 96


def test_the_loss_decides_where_it_is_known() -> None:
    (finding,) = scaled((0.0, 1.0), (0.0, 2.6), loss=4.0).found("evaluation-scale")
    assert finding.severity == "warning"
    assert "times that of training" in finding.message
    (finding,) = scaled((0.0, 1.0), (0.76, 0.07), loss=0.1).found("evaluation-scale")
    assert finding.severity == "info"


def test_a_plot_that_goes_beyond_the_data_is_a_note() -> None:
    (finding,) = scaled((0.0, 1.15), (0.0, 3.5)).found("evaluation-scale")
    assert finding.severity == "info"
    assert "either the data is another" in finding.message


def test_a_scaler_that_was_fitted_again() -> None:
    ends = (0.0, 1.0, 0.0, 1.0)
    (finding,) = scaled((0.5, 0.26), (0.61, 0.2), ends=ends).found("evaluation-scale")
    assert finding.severity == "info"
    assert "fitted again" in finding.message
    assert not scaled((0.5, 0.26), (0.61, 0.2), ends=ends, zeros=0.3).found("evaluation-scale")
    assert not scaled((0.5, 0.26), (0.51, 0.26), ends=ends).found("evaluation-scale")
    beyond = (0.0, 1.0, 0.1, 1.04)
    assert not scaled((0.5, 0.26), (0.61, 0.2), ends=beyond).found("evaluation-scale")
    assert scaled((0.5, 0.26), (0.61, 0.2), ends=ends, loss=5.0).found("evaluation-scale")[
        0
    ].severity == "warning"  # fmt: skip


def test_training_that_goes_over_all_scales_itself() -> None:
    made = scaled((0.0, 1.0), (5.0, 1.0))
    sweep = np.tile(np.linspace(-6, 6, 20), 10)
    made.series("", "inputs", mean=sweep, std=1.0, min=-9.0, max=9.0, info={"dtype": "float32"})
    assert not made.found("evaluation-scale")


def test_too_little_training() -> None:
    made = Made(2).loss(falling(2)).series("", "inputs", mean=0.0, std=1.0, min=-3, max=3)
    made.series("", "inputs", phase="eval", at=[1], mean=[9.0], std=[1.0], min=[6.0], max=[12.0])
    assert not made.found("evaluation-scale")
