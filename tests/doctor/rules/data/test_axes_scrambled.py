"""The rule `axes-scrambled`: when it warns, when it asks, and when it says nothing."""

from __future__ import annotations

from typing import Any

from tests.doctor.ill import stuck, well
from tests.doctor.synthetic import Made

EXPERIMENT = "axes keep their meaning"
FACTS: dict[str, Any] = {"given": [64, 8, 8, 3], "made": [64, 3, 8, 8], "lines": ["train.py:9"]}


def of(made: Made, outcome: str, reason: str = "") -> Made:
    return made.examined(EXPERIMENT, outcome, reason, **FACTS)


def test_it_warns_where_little_is_learnt() -> None:
    (finding,) = of(stuck(), "found").found("axes-scrambled")
    assert finding.severity == "warning"
    assert "(64, 8, 8, 3) is viewed as (64, 3, 8, 8)" in finding.message
    assert "permute" in finding.fix
    assert finding.lines == ("train.py:9",)


def test_it_asks_where_the_run_does_its_job_or_the_shapes_fit() -> None:
    (finding,) = of(well(), "found").found("axes-scrambled")
    assert finding.severity == "info"
    assert "Is that meant?" in finding.message
    (finding,) = of(stuck(), "question", "it may be").found("axes-scrambled")
    assert finding.severity == "info"


def test_it_is_silent() -> None:
    assert not of(stuck(), "fine").found("axes-scrambled")
    assert not stuck().found("axes-scrambled")
