"""The findings of a run."""

from __future__ import annotations

import pytest

from nethook.page.sections.findings import findings, told, value
from tests.page.shown import figures_of, opened, reading, text_of, where


def test_every_finding_is_told_with_its_fix() -> None:
    shown = text_of(findings(opened(), reading(), where()))
    for finding in reading().findings:
        assert finding.code in shown
        assert finding.fix in shown


def test_a_fix_that_was_tried_is_told_with_its_outcome() -> None:
    finding = reading().findings[0]
    assert "Tried" not in text_of(told(opened(), reading(), finding))
    tried = finding._replace(tried="rate / 10: training loss 2 → 1. It helped.")
    shown = text_of(told(opened(), reading(), tried))
    assert shown.index("Tried ") > shown.index("Fix ")
    assert "training loss 2 → 1. It helped." in shown


def test_a_finding_has_figures_that_show_it() -> None:
    drawn = figures_of(findings(opened(), reading(), where()))
    assert drawn["finding-0-figure-0"]["data"]


def test_evidence_stands_beside_its_limit() -> None:
    shown = text_of(told(opened(), reading(), reading().findings[0]))
    assert "silent share" in shown
    assert "0.83" in shown
    assert "0.5" in shown


@pytest.mark.parametrize(
    ("measured", "text"), [(None, ""), (1234567, "1,234,567"), (0.123456, "0.1235"), (True, "True")]
)
def test_numbers_of_evidence(measured: object, text: str) -> None:
    assert value(measured) == text
