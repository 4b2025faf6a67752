"""`diagnose` and `assert_healthy` on real runs; settings of a project; rules of others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nethook
from nethook.doctor.finding import Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.errors import NoSuchRunError, NotARunError, OptionError, UnhealthyError


def codes(found: list[Finding]) -> list[str]:
    return [each.code for each in found]


def look(history: History, _limit: Any) -> Iterator[Finding]:
    yield Finding("our-own", "warning", f"{history.steps} steps", "none")


def fails(_history: History, _limit: Any) -> Iterator[Finding]:
    raise ZeroDivisionError("a bad rule")


OURS = Rule("our-own", Cause.REST, look, reads=("series.@loop.forwards.mean",))
BROKEN = Rule("broken", Cause.LOOP, fails, reads=())


def test_a_fault_is_found_and_a_healthy_run_gives_nothing(ill: Path, well: Path) -> None:
    assert codes(nethook.diagnose(ill)) == ["gradient-wiped"]
    assert nethook.diagnose(well) == []
    nethook.assert_healthy(well)


def test_a_run_that_is_open_is_diagnosed_too(ill: Path) -> None:
    with nethook.open_run(ill) as run:
        assert codes(nethook.diagnose(run)) == ["gradient-wiped"]


def test_findings_are_plain_data(ill: Path) -> None:
    (finding,) = nethook.diagnose(ill)
    data = json.loads(json.dumps(finding.to_dict()))
    assert sorted(data) == sorted(
        ["code", "severity", "sites", "first_step", "last_step", "evidence", "message", "fix",
         "consequences", "lines"]
    )  # fmt: skip
    assert data["evidence"]["wiped backward passes"] == {"value": 40.0, "threshold": 3}


def test_assert_healthy_lists_the_findings(ill: Path) -> None:
    with pytest.raises(UnhealthyError, match="the run has 1 finding:\n- gradient-wiped") as caught:
        nethook.assert_healthy(ill)
    assert isinstance(caught.value, AssertionError)
    assert "fix: Call optimizer.zero_grad() before loss.backward()" in str(caught.value)
    nethook.assert_healthy(ill, ignore=["gradient-wiped", "not-learning"])


def test_errors_say_what_to_type_instead(ill: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no rule 'dead-unit'. Did you mean 'dead-units'\?"):
        nethook.diagnose(ill, ignore=["dead-unit"])
    with pytest.raises(
        OptionError, match=r"thresholds of dead-units \(error, share, .*\); got 'shares'"
    ):
        nethook.diagnose(ill, thresholds={"dead-units": {"shares": 1}})
    with pytest.raises(OptionError, match=r"a list of codes; got 'x'. Type \['x'\]"):
        nethook.diagnose(ill, ignore="x")
    with pytest.raises(OptionError, match="must be one of info, warning, error; got 'bad'"):
        nethook.assert_healthy(ill, severity="bad")  # type: ignore[arg-type]
    with pytest.raises(NoSuchRunError):
        nethook.diagnose(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("hello")
    with pytest.raises(NotARunError):
        nethook.diagnose(tmp_path / "text.db")


def test_a_project_sets_what_is_ignored_and_thresholds(
    ill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    project = tmp_path / "pyproject.toml"
    project.write_text('[tool.nethook]\nignore = ["gradient-wiped", "not-learning"]\n')
    assert nethook.diagnose(ill) == []
    project.write_text("[tool.nethook.thresholds.gradient-wiped]\nsteps = 1000\n")
    assert "gradient-wiped" not in codes(nethook.diagnose(ill))
    again = nethook.diagnose(ill, thresholds={"gradient-wiped": {"steps": 3}})
    assert codes(again) == ["gradient-wiped"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.nethook]\nignored = []", "must have ignore and thresholds only; got 'ignored'"),
        ('[tool.nethook]\nignore = "x"', "`ignore` must be a list of codes"),
        (
            "[tool.nethook.thresholds]\ndead-units = 1",
            "`thresholds` must be numbers in a table per code",
        ),
        ('[tool.nethook]\nignore = ["x"]', "pyproject.toml: there is no rule 'x'"),
    ],
)
def test_settings_that_mean_nothing(
    ill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(OptionError, match=said):
        nethook.diagnose(ill)


def test_a_rule_that_fails_does_not_hide_the_others(ill: Path) -> None:
    with pytest.warns(UserWarning, match="the rule broken failed: ZeroDivisionError"):
        found = nethook.diagnose(ill, rules=[BROKEN, OURS])
    assert codes(found) == ["our-own"]


def test_rules_of_other_packages(
    ill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "ours-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n")
    entry = "[nethook.rules]\nours = tests.doctor.test_diagnose:OURS\n"
    (package / "entry_points.txt").write_text(entry)
    monkeypatch.syspath_prepend(tmp_path)
    (root,) = nethook.diagnose(ill)
    assert "our-own" in codes(list(root.consequences))
    assert "our-own" not in codes(list(nethook.diagnose(ill, ignore=["our-own"])[0].consequences))
