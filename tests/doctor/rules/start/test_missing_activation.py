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


NORMED = (("b.conv", "linear", True), ("b.bn", "batch_norm", False), ("c.conv", "linear", True))


def test_a_norm_between_two_layers_bends_nothing() -> None:
    (finding,) = chain(*NORMED).found("missing-activation")
    assert finding.severity == "warning"
    assert "nothing non-linear but a batch norm" in finding.message
    bent = (*NORMED[:2], ("b", "relu", False), NORMED[2])
    assert not chain(*bent).found("missing-activation")
    other = (NORMED[0], ("b.ln", "layer_norm", False), NORMED[2])
    assert not chain(*other).found("missing-activation")


def test_a_norm_in_a_run_that_learns() -> None:
    # As at the narrow end of a block, where a norm without an activation is meant.
    assert not chain(*NORMED).loss(falling(200)).found("missing-activation")


def test_an_activation_that_is_made_and_never_called() -> None:
    made = (
        chain(*NORMED).loss(falling(200)).module("b.act", activation="rectifier", first_call=None)
    )
    (finding,) = made.found("missing-activation")
    assert finding.severity == "info"
    assert "`b.act` was made and never called." in finding.message
    assert "Call `self.act` in the forward" in finding.fix


def test_an_idle_activation_of_another_module_says_nothing() -> None:
    made = (
        chain(*NORMED)
        .loss(falling(200))
        .module("head.act", activation="rectifier", first_call=None)
    )
    assert not made.found("missing-activation")
