"""Findings read from plain data, whatever is in it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.runs.reading.show import findings_table
from nethook.text.findings import Evidence, read_evidence, read_findings, verdict, when
from nethook.text.tried_lines import tried_line
from tests.figures.made import FINDINGS

plain = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = (
    *("code", "severity", "sites", "first_step", "last_step"),
    *("evidence", "message", "fix", "consequences", "lines"),
)


@given(st.dictionaries(st.sampled_from(FIELDS), plain))
def test_anything_is_read(found):
    (finding,) = read_findings([found])
    assert finding.severity in ("error", "warning", "info")
    assert finding.first_step is None or isinstance(finding.first_step, int)
    assert isinstance(when(finding), str)
    assert findings_table([found]).text()


def test_the_worst_is_first_and_the_doctors_order_is_kept():
    severities = ("info", "error", "warning", "error")
    found = [{"code": c, "severity": s} for c, s in zip("abcd", severities, strict=True)]
    assert [finding.code for finding in read_findings(found)] == ["b", "d", "c", "a"]


@pytest.mark.parametrize(
    "evidence",
    [
        {"silent": {"value": 0.8, "threshold": 0.5}},
        [{"name": "silent", "value": 0.8, "threshold": 0.5}],
    ],
)
def test_evidence_in_either_form(evidence):
    assert read_evidence(evidence) == [Evidence("silent", 0.8, 0.5)]


def test_evidence_without_a_threshold_or_with_a_strange_one():
    assert read_evidence({"units": 24}) == [Evidence("units", 24)]
    assert read_evidence({"x": {"value": 1, "threshold": "high"}}) == [Evidence("x", 1)]
    (odd,) = read_evidence({"x": {"value": 1, "threshold": math.nan, "quantity": "silent"}})
    assert odd.quantity == "silent"


def test_the_verdict_in_words():
    assert verdict(read_findings(FINDINGS)) == "1 error, 1 warning, 1 note"
    assert verdict([]) == "no findings"
    assert verdict(read_findings([{"severity": "error"}] * 2)) == "2 errors"


def test_what_came_of_a_fix_stands_with_its_finding():
    tried = [{"code": "b", "change": "half the rate", "helped": True, "train": [2.0, 1.0]}, "odd"]
    first, second = read_findings([{"code": "a"}, {"code": "b"}], tried)
    assert first.tried == ""
    assert second.tried == "half the rate: training loss 2 → 1. It helped."
    assert second.tried == tried_line(tried[0])


def test_when():
    read = {finding.code: finding for finding in read_findings(FINDINGS)}
    assert when(read["dead-units"]) == "steps 60 to 119"
    assert when(read["unused-module"]) == "at step 0"
