"""SARIF: the parts that its specification requires, and what a code scanner shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nethook.exporting.ci.sarif import sarif_log
from tests.exporting.ci.made import findings


def test_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = json.loads(
        sarif_log(findings(tmp_path), run="runs/a.db", verdict="1 error", version="1.2")
    )
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("nethook", "1.2")
    assert run["properties"] == {"run": "runs/a.db", "verdict": "1 error"}
    first, second = run["results"]
    for result in run["results"]:  # 3.27.6: an index names the same rule as the id
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert (first["level"], second["level"]) == ("error", "note")
    assert first["message"]["text"].endswith("Fix: Lower the rate, or use LeakyReLU.")
    (location,) = first["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "train%2C%20it.py"},
        "region": {"startLine": 42},
    }
    sites = [each["fullyQualifiedName"] for each in location["logicalLocations"]]
    assert sites == ["net.relu", "net.a,b"]
    assert first["properties"] == {"first_step": 3, "last_step": 90}
    assert "locations" not in second


def test_a_run_without_findings_has_an_empty_list() -> None:
    (run,) = json.loads(sarif_log([], run="a.db", verdict="not judged", version="1"))["runs"]
    assert run["results"] == []
