"""Which run `--resume` means."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.errors import RunFileError, RunInUseError
from nethook.running.paths import run_file
from nethook.runs.writing.writer import RunWriter


def test_resume_without_a_name_goes_on_in_the_last_run_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["train.py", "--lr", "0.1"])
    options = {"resume": True, "arguments": ["--lr", "0.1"]}
    new = Path(run_file(None, "train", **options))
    assert not new.exists()  # there is none yet
    runs = [
        tmp_path / "runs" / f"{name}.db"
        for name in (
            "train-2026-01-01T00-00-00",
            "train-2026-01-02T00-00-00",
            "train-2026-01-02T00-00-00-2",  # of a model that came later
            "train-2026-01-02T00-00-00.rank1",
            "trainer-2026-01-03T00-00-00",
        )
    ]
    for path in runs:
        with RunWriter(path) as writer:
            writer.event("something", 0)
    (tmp_path / "runs" / "train-2026-01-04T00-00-00.db").touch()  # a kill left it
    assert run_file(None, "train", **options) == str(runs[1])
    with pytest.raises(RunFileError) as caught:
        run_file(None, "train", resume=True, arguments=["--lr", "0.2"])
    assert str(caught.value) == (
        f"the last run of this script, {str(runs[1])!r}, had other arguments (--lr 0.1). To "
        "continue it, name it: --resume --to runs/train-2026-01-02T00-00-00.db. For a new run, "
        "leave out --resume."
    )


def test_resume_refuses_a_run_that_is_being_written(tmp_path: Path) -> None:
    with (
        RunWriter(tmp_path / "a.db") as writer,
        pytest.raises(RunInUseError, match=r"is in use: process \d+ is writing it"),
    ):
        writer.event("something", 0)
        writer.flush()
        run_file(str(tmp_path / "a.db"), "a", resume=True)
