"""`nethook selftest`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nethook.cli.main import app
from nethook.selftest import report
from nethook.selftest.checks import Check, NotAskedError


def asked(monkeypatch: pytest.MonkeyPatch, works: bool) -> None:
    def kernel(_: object) -> tuple[str, dict[str, object]]:
        if works:
            return "loads", {}
        raise NotAskedError("not installed")

    monkeypatch.setattr(report, "CHECKS", (Check("compiled kernel", kernel),))


def test_a_page_and_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked(monkeypatch, works=True)
    done = CliRunner().invoke(app, ["selftest", "--to", str(tmp_path / "s.json")])
    assert done.exit_code == 0
    assert "✓  compiled kernel" in done.output
    assert done.output.endswith("nethook works here\n")
    assert json.loads((tmp_path / "s.json").read_text())["answers"][0]["state"] == "passed"


def test_a_release_needs_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    asked(monkeypatch, works=False)
    assert CliRunner().invoke(app, ["selftest"]).exit_code == 0
    done = CliRunner().invoke(app, ["selftest", "--require-kernel"])
    assert done.exit_code == 1
    assert "failed: compiled kernel" in done.output


def test_a_device_that_is_not_there_is_said_in_a_line() -> None:
    done = CliRunner().invoke(app, ["selftest", "--device", "gpu"])
    assert done.exit_code == 2
    assert "nethook selftest: `--device` must be" in done.output
