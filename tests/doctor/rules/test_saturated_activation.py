"""The rule `saturated-activation`: when it reports, and when it does not."""

from __future__ import annotations

from statistics import NormalDist

import pytest

from tests.doctor.ill import stuck


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
