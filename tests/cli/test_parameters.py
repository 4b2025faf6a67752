"""What a shell offers for run files and for options with a few words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nethook.cli.parameters import one_of, run_files
from tests.cli.command import run
from tests.figures.shared import training


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for age, name in enumerate(("runs/new.db", "runs/old.db", "other/x.db", "here.db", "here.py")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (1000 - age, 1000 - age))
    (tmp_path / "runs" / ".hidden.db").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", ["runs/new.db", "runs/old.db", "here.db", "other/", "runs/"]),
        ("he", ["here.db"]),
        ("ru", ["runs/new.db", "runs/old.db", "runs/"]),
        ("runs/", ["runs/new.db", "runs/old.db"]),
        ("runs/o", ["runs/old.db"]),
        ("other/", ["other/x.db"]),
        ("no/such/folder", []),
    ],
)
def test_run_files_are_offered_and_nothing_else(typed: str, offered: list[str]) -> None:
    found = run_files(typed)
    assert sorted(found) == sorted(offered)
    files = [name for name in found if not name.endswith("/")]
    assert files == [name for name in offered if name in files]  # the newest first


def test_a_folder_with_its_whole_path(folder: Path) -> None:
    assert run_files(f"{folder}/runs/n") == [f"{folder}/runs/new.db"]


def test_a_few_words() -> None:
    words = one_of("csv", "parquet", "tensorboard")
    assert words("") == ["csv", "parquet", "tensorboard"]
    assert words("p") == ["parquet"]


def test_what_to_was_called_before_still_works(tmp_path: Path) -> None:
    for command in ("report", "diff"):
        files = [training()] * (2 if command == "diff" else 1)
        done = run(command, *files, "-o", tmp_path / f"{command}.html")
        assert done.exit_code == 0
        assert (tmp_path / f"{command}.html").is_file()
        assert "--output" not in run(command, "--help").stdout
