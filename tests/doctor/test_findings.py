"""The list that `diagnose` returns: a list in every way, and shown with its verdict."""

from __future__ import annotations

import copy
import pickle

import pytest

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.findings import Findings
from nethook.doctor.verdict import Verdict

FINDING = Finding(
    "dead-units", "error", "Half are <dead>.", "Lower the rate.", ("fc1",), 3, 9,
    {"dead share": Evidence(0.5, 0.3)},
)  # fmt: skip
FOUND = Verdict("findings", "1 error", "error")
FINE = Verdict("no problems found", "54 checks, 600 steps", "good")


def test_it_is_a_list() -> None:
    found = Findings([FINDING], FOUND)
    assert found == [FINDING]
    assert found == [FINDING]
    assert found != []
    assert Findings((), FINE) == []
    assert not Findings((), FINE)
    assert isinstance(found, list)
    assert found[0] is FINDING
    assert found + [FINDING] == [FINDING, FINDING]  # noqa: RUF005 - it must work
    assert sorted(found, key=lambda finding: finding.code) == [FINDING]


@pytest.mark.parametrize("again", [copy.copy, lambda found: pickle.loads(pickle.dumps(found))])
def test_a_copy_shows_the_same(again: object) -> None:
    assert callable(again)
    found = Findings([FINDING], FOUND)
    assert again(found) == found
    assert repr(again(found)) == repr(found)


def test_in_a_terminal_it_is_what_the_command_prints() -> None:
    assert repr(Findings([FINDING], FOUND)).splitlines() == [
        "1 error:",
        "  error: dead-units (fc1; steps 3 to 9)",
        "    Half are <dead>.",
        "    evidence: dead share 0.5 (limit 0.3)",
        "    fix: Lower the rate.",
    ]
    assert repr(Findings((), FINE)) == "no problems found (54 checks, 600 steps)"
    crashed = Verdict("crashed", "the script ended with ValueError: x; 1 error", "error")
    shown = repr(Findings([FINDING], crashed)).splitlines()
    assert shown[:2] == ["crashed: the script ended with ValueError: x; 1 error", "1 error:"]
    assert repr(Findings()) == "[]"


def test_in_a_notebook_it_is_html() -> None:
    assert "Half are &lt;dead&gt;." in Findings([FINDING], FOUND)._repr_html_()
    assert "no problems found (54 checks, 600 steps)" in Findings((), FINE)._repr_html_()
