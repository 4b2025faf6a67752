"""`nethook publish`, and runs by their address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from typer.testing import CliRunner

from nethook.cli.main import app
from nethook.runs.writing.writer import RunWriter


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NETHOOK_CACHE", str(tmp_path / "cache"))
    yield
    fsspec.filesystem("memory").store.clear()


CSV = {"metrics": [], "ui": [], "export": ["--format", "csv"]}


def test_a_run_goes_there_and_can_be_read(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.log("accuracy", 0.5, 0)
    done = CliRunner().invoke(app, ["publish", str(tmp_path / "a.db"), "memory://bucket/runs"])
    assert (done.exit_code, done.output) == (0, "memory://bucket/runs/a.db\n")
    read = CliRunner().invoke(app, ["metrics", "memory://bucket/runs/a.db"])
    assert read.exit_code == 0, read.output
    for command in ("metrics", "ui", "export"):
        gone = CliRunner().invoke(app, [command, "memory://bucket/runs/b.db", *CSV[command]])
        assert gone.exit_code == 2
        assert "there is no run 'memory://bucket/runs/b.db'" in gone.output.replace("\n", " ")


def test_a_path_is_no_address(tmp_path: Path) -> None:
    RunWriter(tmp_path / "a.db").close()
    done = CliRunner().invoke(app, ["publish", str(tmp_path / "a.db"), "elsewhere"])
    assert done.exit_code == 2
    assert "`URL` must be an address such as s3://bucket/runs; got 'elsewhere'" in done.output


def test_results_go_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for rank in range(2):
        with RunWriter(tmp_path / "there" / "a.db", rank=rank, world_size=2) as writer:
            writer.log("accuracy", 0.5, 0)
    address = "memory://bucket/runs/a.db"
    CliRunner().invoke(app, ["publish", str(tmp_path / "there" / "a.db"), address])
    for words in (["report", address], ["merge", address], ["export", address, "--format", "csv"]):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"there", "cache", "a.html", "a-merged.db", "a-csv"}


def test_the_page_of_a_folder_in_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = []
    monkeypatch.setattr("nethook.page.live.serving.serve", lambda place, **_: served.append(place))
    RunWriter(tmp_path / "a.db").close()
    CliRunner().invoke(app, ["publish", str(tmp_path / "a.db"), "memory://bucket/runs"])
    done = CliRunner().invoke(app, ["ui", "memory://bucket/runs"])
    assert done.exit_code == 0, done.output
    assert [path.name for path in served[0].glob("*.db")] == ["a.db"]
