"""`nethook publish`, and runs by their address."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest
from typer.testing import CliRunner

from nethook.cli.main import app
from nethook.runs.writing.writer import RunWriter


def test_a_run_goes_there_and_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETHOOK_CACHE", str(tmp_path / "cache"))
    with RunWriter(tmp_path / "a.db") as writer:
        writer.log("accuracy", 0.5, 0)
    done = CliRunner().invoke(app, ["publish", str(tmp_path / "a.db"), "memory://bucket/runs"])
    assert (done.exit_code, done.output) == (0, "memory://bucket/runs/a.db\n")
    read = CliRunner().invoke(app, ["metrics", "memory://bucket/runs/a.db"])
    assert read.exit_code == 0, read.output
    gone = CliRunner().invoke(app, ["metrics", "memory://bucket/runs/b.db"])
    assert gone.exit_code == 2
    fsspec.filesystem("memory").store.clear()


def test_a_path_is_no_address(tmp_path: Path) -> None:
    RunWriter(tmp_path / "a.db").close()
    done = CliRunner().invoke(app, ["publish", str(tmp_path / "a.db"), "elsewhere"])
    assert done.exit_code == 2
    assert "`URL` must be an address such as s3://bucket/runs; got 'elsewhere'" in done.output
