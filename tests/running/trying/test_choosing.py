"""Which findings have a fix."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nethook.doctor import rules
from nethook.running.trying.choosing import FIXES, MOST, changes_for
from nethook.running.trying.fixes import __file__ as folder


def run_with(*findings: dict[str, Any]) -> Any:
    return SimpleNamespace(findings=findings, events=[])


def finding(code: str, severity: str = "error") -> dict[str, Any]:
    return {"code": code, "severity": severity}


def test_the_first_root_causes_are_tried_and_no_more_than_three() -> None:
    run = run_with(
        finding("softmax-before-cross-entropy"),  # no fix from outside
        finding("missing-zero-grad"),
        finding("train-mode-evaluation", "info"),
        finding("exploding-gradient"),
        finding("unshuffled-data", "warning"),
        finding("symmetric-init"),
    )
    codes = [change.code for change in changes_for(run)]
    assert codes == ["missing-zero-grad", "exploding-gradient", "unshuffled-data"]
    assert len(codes) == MOST


def test_one_change_is_tried_once() -> None:
    run = run_with(finding("unregistered-layers"), finding("optimizer-misses-parameters"))
    assert [change.code for change in changes_for(run)] == ["unregistered-layers"]


def test_a_run_without_findings_has_nothing_to_try() -> None:
    assert changes_for(run_with()) == []


def test_every_fix_is_in_the_list() -> None:
    files = {path.stem for path in Path(folder).parent.glob("*.py")}
    assert files - {"__init__", "settings"} == set(FIXES)


@pytest.mark.parametrize("name", FIXES)
def test_a_fix_belongs_to_one_set_of_findings(name: str) -> None:
    codes = import_module(f"nethook.running.trying.fixes.{name}").CODES
    others = {
        code
        for other in FIXES
        if other != name
        for code in import_module(f"nethook.running.trying.fixes.{other}").CODES
    }
    assert codes
    assert not set(codes) & others


def test_most_codes_are_those_of_rules() -> None:
    known = {path.stem.replace("_", "-") for path in Path(rules.__file__).parent.glob("*/*.py")}
    codes = {
        code
        for name in FIXES
        for code in import_module(f"nethook.running.trying.fixes.{name}").CODES
    }
    # Of rules that a version may not have.
    later = {"diverged", "unshuffled-data", "unregistered-layers", "stale-optimizer"}
    assert codes - later <= known
