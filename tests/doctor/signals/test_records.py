"""Findings that rest on records of a loss."""

from __future__ import annotations

from nethook.doctor.finding import Evidence
from nethook.doctor.signals.records import finding_of_records
from tests.doctor.synthetic import Made


def test_dates_and_line_are_those_of_the_records() -> None:
    made = Made(200).loss([1.0] * 200).record(3, 20, 150, source="/home/me/train.py:42")
    records = made.history().records("train")
    evidence = {"losses made so": Evidence(3, 2)}
    told = finding_of_records("some-code", "warning", "it is so.", "do this.", records, evidence)
    assert (told.first_step, told.last_step) == (3, 150)
    assert told.lines == ("/home/me/train.py:42",)
    assert told.evidence == evidence
    assert (told.code, told.severity, told.fix) == ("some-code", "warning", "do this.")
