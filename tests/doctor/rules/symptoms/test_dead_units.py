"""The rule `dead-units`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.doctor.rules.symptoms import dead_units
from tests.doctor.ill import ILL, sparse, stuck
from tests.doctor.synthetic import Made, falling


def test_three_in_ten_units() -> None:
    (finding,) = sparse(stuck(), 0.31).found("dead-units")
    assert finding.severity == "warning"
    assert finding.sites == ("act",)
    assert finding.evidence["share of dead units"].value == pytest.approx(0.31)
    assert not sparse(stuck(), 0.29).found("dead-units")
    assert sparse(stuck(), 0.51).found("dead-units")[0].severity == "error"


def test_a_falling_loss_is_no_excuse_where_every_input_gets_one_output() -> None:
    def made(share: float, spread: float) -> Made:
        run = sparse(Made().loss(falling(200, 2.0, 0.1)), share)
        return run.batch("output_spread", spread).batch("input_spread", 0.7).batch("size", 32)

    (finding,) = made(1.0, 0.0).found("dead-units")
    assert finding.severity == "error"
    assert dead_units.ONE_ANSWER in finding.message
    assert not made(0.9, 0.0).found("dead-units")  # some of the layer is alive
    assert not made(1.0, 0.1).found("dead-units")  # it comes by another way, beside the layer
    assert not made(1.0, 0.0).batch("input_spread", 0.0).found("dead-units")


def test_a_bias_without_gradient_before_a_function() -> None:
    def made(share: float) -> Made:
        run = stuck().module("fc", activation="linear").parameter("fc.bias", shape=[10])
        return run.series("fc.bias", "param_grads", zero_share=share)

    (finding,) = made(0.4).found("dead-units")
    assert "`fc`: 4 of 10 units" in finding.message
    assert not made(0.2).found("dead-units")


def test_the_last_bias_of_a_critic_whose_means_cancel_each_other() -> None:
    run = stuck()
    for at, name in enumerate(("first", "last")):
        run.module(name, activation="linear", parameters=[f"{name}.bias"], first_call=at)
    run.parameter("last.bias", shape=[1]).series("last.bias", "param_grads", zero_share=1.0)
    assert not run.found("dead-units")
    inner = stuck()
    for at, name in enumerate(("first", "last")):
        inner.module(name, activation="linear", parameters=[f"{name}.bias"], first_call=at)
    inner.parameter("first.bias", shape=[10]).series("first.bias", "param_grads", zero_share=0.4)
    assert inner.found("dead-units")


def test_what_the_pre_flight_check_reports() -> None:
    counts = {"a": (31, 100), "b": (60, 100), "c": (1, 100)}
    finding = dead_units.before_training(counts, 16)
    assert finding.sites == ("a", "b")
    assert finding.severity == "error"
    assert "`b`: 60 of 100 units are dead: zero for each of 16 samples" in finding.message


def test_a_threshold_can_be_changed() -> None:
    made = ILL["dead-units"]
    assert made().found("dead-units", share=0.7)
    assert not made().found("dead-units", share=0.9)


def test_since_when_is_in_the_record() -> None:
    """A layer whose function is no module: its own outputs are never zero."""
    run = stuck().module("fc", activation="linear").parameter("fc.bias", shape=[10])
    run.series("fc", "outputs", zero_share=0.0, max=1.0)
    run.series("fc.bias", "param_grads", zero_share=np.r_[np.zeros(60), np.full(140, 0.8)])
    (finding,) = run.found("dead-units")
    assert finding.first_step == 60
    assert "8 of 10 units are dead since step 60" in finding.message
