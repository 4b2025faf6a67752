"""The rule `saturated-activation`: when it reports, and when it does not."""

from __future__ import annotations

from statistics import NormalDist

import pytest

from tests.doctor.ill import stuck
from tests.doctor.synthetic import Made


def bounded(share: float, run: Made) -> Made:
    made = run.module("t", activation="bounded").series("t", "outputs", near_share=share)
    return made.module("out", activation="linear")


def test_four_outputs_in_five() -> None:
    (finding,) = bounded(0.81, stuck()).found("saturated-activation")
    assert finding.message.startswith("`t`: 81% of the outputs are within 3 % of an end")
    assert not bounded(0.79, stuck()).found("saturated-activation")


def test_the_last_layer_may_be_at_its_ends() -> None:
    made = stuck().module("fc", activation="linear").module("t", activation="bounded")
    assert not made.series("t", "outputs", near_share=0.97).found("saturated-activation")


def test_functions_count_as_activations() -> None:
    made = stuck()
    made.info["ops"] = [
        {"site": "a", "op": "linear", "linear": True, "from": []},
        {"site": "", "op": "tanh", "from": [0]},
        {"site": "b", "op": "linear", "linear": True, "from": [1]},
    ]
    for site in ("a", "b"):
        made.module(site, activation="linear").series(site, "outputs", mean=0.0, std=40.0, max=9.0)
    (finding,) = made.found("saturated-activation")
    assert finding.sites == ("a",)
    assert finding.evidence["share near the ends"].value == pytest.approx(
        2 * (1 - NormalDist(0, 40).cdf(2.0923)), abs=1e-6
    )
