"""What the doctor returns."""

from __future__ import annotations

import json

import pytest

from nethook.doctor.finding import SEVERITIES, Evidence, Finding, Severity


def finding(severity: Severity = "warning", **more: object) -> Finding:
    return Finding("dead-units", severity, "units are dead.", "Use nn.GELU.", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("least", SEVERITIES)
def test_severities_are_ordered(severity: Severity, least: Severity) -> None:
    order = ["info", "warning", "error"]
    assert finding(severity).at_least(least) is (order.index(severity) >= order.index(least))


def test_its_line_names_three_sites() -> None:
    text = str(finding(sites=("a", "b", "c", "d"), first_step=7))
    assert text == "dead-units (warning) at a, b, c, since step 7: units are dead."
    assert str(finding()) == "dead-units (warning), since step 0: units are dead."


def test_names_of_modules_cannot_break_its_line() -> None:
    assert "\n" not in str(finding(sites=("a\nb",)))
    assert "\x1b" not in str(finding(sites=("\x1b[31ma",)))


def test_plain_data_has_consequences_inside() -> None:
    below = finding("info")
    evidence = {"share": Evidence(0.4, 0.3), "units": Evidence(12)}
    data = finding(sites=("act",), evidence=evidence, consequences=(below,)).to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["sites"] == ["act"]
    assert data["evidence"]["share"] == {"value": 0.4, "threshold": 0.3}
    assert data["evidence"]["units"] == {"value": 12, "threshold": None}
    assert data["consequences"] == [below.to_dict()]


def test_it_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        finding().code = "other"  # type: ignore[misc]
