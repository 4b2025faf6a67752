"""The rule `output-range`: when it reports, and when it does not."""

from __future__ import annotations

import pytest

from tests.doctor.ill import WIDE
from tests.doctor.synthetic import Made


@pytest.mark.parametrize(("least", "reports"), [(-0.11, True), (-0.09, False)])
def test_targets_a_tenth_of_their_spread_outside(least: float, reports: bool) -> None:
    target = {**WIDE, "min": least, "std": 1.0}
    found = (
        Made().record(kind="mse", chain=["MseLoss", "Relu"], target=target).found("output-range")
    )
    assert bool(found) is reports
    if reports:
        assert "ends in relu and lies between 0 and inf" in found[0].message
        assert found[0].evidence["least target"].value == least


def test_views_after_the_activation_do_not_matter() -> None:
    made = Made().record(kind="mse", chain=["MseLoss", "View", "Tanh"], target=WIDE)
    assert made.found("output-range")
    other = Made().record(kind="other", chain=["MseLoss", "View", "Tanh"], target=WIDE)
    assert not other.found("output-range")


def test_the_error_of_a_bounded_output_tells_of_targets_that_were_not_kept() -> None:
    made = Made().record(kind="l1", chain=["Abs", "Sub", "Tanh"], value=28.0, target={})
    (finding,) = made.found("output-range")
    assert "28 away" in finding.message
    assert (
        not Made().record(kind="l1", chain=["Abs", "Sub", "Tanh"], value=1.0).found("output-range")
    )


def test_another_function_of_the_same_node() -> None:
    """To autograd, relu6 is a hardtanh."""
    facts = {"kind": "mse", "chain": ["MseLoss", "Hardtanh"], "target": {**WIDE, "min": 0.0}}
    assert not Made().record(**facts, prediction={"min": 0.0, "max": 5.2}).found("output-range")
    assert Made().record(**facts, prediction={"min": -0.4, "max": 1.0}).found("output-range")


@pytest.mark.parametrize("last", ["LogSoftmax", "Exp", "Softplus"])
def test_a_side_that_an_output_never_reaches(last: str) -> None:
    made = Made().record(
        kind="mse", chain=["Pow", "Sub", "Select", last], target=WIDE, source="a:1"
    )
    (finding,) = made.found("output-range")
    assert finding.lines == ("a:1",)
