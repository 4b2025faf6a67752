"""`nethook diagnose`: what it prints, and the code that it ends with."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import nethook
from nethook.cli.main import app
from tests.doctor.runs import train


@pytest.fixture(scope="module")
def ill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("check") / "ill.db", wipe=True)


def check(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["diagnose", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_text(ill: Path) -> None:
    code, out, _ = check(ill)
    assert code == 3
    assert f"{ill}\n1 error:\n  error: gradient-wiped (steps 0 to 39)\n" in out
    assert "    fix: Call optimizer.zero_grad() before loss.backward()" in out


def test_json(ill: Path) -> None:
    code, out, _ = check(ill, "--json")
    data = json.loads(out)
    assert code == 3
    assert sorted(data) == ["findings", "run", "verdict"]
    assert data["verdict"] == {"state": "findings", "text": "1 error"}
    assert data["run"] == str(ill)
    assert [each["code"] for each in data["findings"]] == ["gradient-wiped"]


def test_what_is_ignored_or_less_severe_ends_with_0(ill: Path) -> None:
    code, out, _ = check(ill, "--ignore", "gradient-wiped", "--ignore", "not-learning")
    assert code == 0
    assert "no problems found (" in out
    ignored = ("--ignore", "gradient-wiped", "--ignore", "not-learning")
    assert check(ill, "--fail-on", "info", *ignored)[0] == 0


def test_thresholds(ill: Path) -> None:
    code, out, _ = check(ill, "--threshold", "gradient-wiped.steps=1000")
    assert "gradient-wiped" not in out
    assert code in (0, 3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ignore", "dead-unit"], "Did you mean 'dead-units'?"),
        (
            ["--threshold", "dead-units"],
            "`--threshold` must be CODE.NAME=NUMBER; got 'dead-units'.",
        ),
        (
            ["--threshold", "dead-units.share=x"],
            "must be CODE.NAME=NUMBER; got 'dead-units.share=x'. Example: dead-",
        ),
        (["--fail-on", "bad"], "bad"),
    ],
)
def test_a_wrong_call_ends_with_2(ill: Path, arguments: list[str], said: str) -> None:
    code, _, err = check(ill, *arguments)
    assert code == 2
    assert said in err


def test_a_run_without_a_step_is_not_called_healthy(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    path = tmp_path / "a.db"
    with nethook.watch(model, torch.optim.SGD(model.parameters(), 0.1), to=path) as watch:
        watch.be_silent()
    code, out, _ = check(path)
    assert code == 0
    assert "not judged: no step was recorded" in out
    assert "no problems" not in out


def test_a_run_that_cannot_be_read_ends_with_2(tmp_path: Path) -> None:
    code, _, err = check(tmp_path / "none.db")
    assert code == 2
    assert err.startswith("nethook diagnose: ")


def test_formats_for_ci(ill: Path) -> None:
    code, out, _ = check(ill, "--format", "junit")
    assert code == 3
    suite = ET.fromstring(out)
    assert (suite.get("failures"), suite[0].get("classname")) == ("1", "ill")
    code, out, _ = check(ill, "--format", "github")
    assert code == 3
    assert out.startswith("::error ")
    assert "title=nethook%3A gradient-wiped::" in out
    code, out, _ = check(ill, "--format", "sarif")
    assert code == 3
    (run,) = json.loads(out)["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["gradient-wiped"]
    assert run["tool"]["driver"]["version"] == version("nethook")


def test_json_is_a_format_too(ill: Path) -> None:
    assert check(ill, "--format", "json") == check(ill, "--json")
    code, _, err = check(ill, "--format", "xml")
    assert code == 2
    assert "junit" in err
