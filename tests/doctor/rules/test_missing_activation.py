"""The rule `missing-activation`: when it reports, and when it does not."""

from __future__ import annotations

import pytest

from tests.doctor.ill import chain, stuck
from tests.doctor.synthetic import falling

LINEAR = (("a", "linear", True), ("b", "linear", True))


def test_two_linear_layers() -> None:
    (finding,) = chain(*LINEAR).found("missing-activation")
    assert finding.severity == "warning"
    assert finding.sites == ("a", "b")
    between = chain(LINEAR[0], ("", "tanh", False), LINEAR[1])
    assert not between.found("missing-activation")


def test_a_run_that_learns_gets_a_note() -> None:
    made = chain(*LINEAR).loss(falling(200))
    assert made.found("missing-activation")[0].severity == "info"


@pytest.mark.parametrize(("inner", "reports"), [(16, True), (15, False)])
def test_a_narrow_space_between_is_meant(inner: int, reports: bool) -> None:
    made = stuck()
    made.info["ops"] = [
        {"site": "a", "op": "linear", "linear": True, "from": []},
        {"site": "b", "op": "linear", "linear": True, "from": [0]},
    ]
    made.module("a").parameter("a.weight", shape=[inner, 16])
    made.module("b").parameter("b.weight", shape=[16, inner])
    assert bool(made.found("missing-activation")) is reports
