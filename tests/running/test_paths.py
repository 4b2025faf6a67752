"""Where the file of a run goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nethook.errors import RunExistsError, RunFileError
from nethook.running.paths import run_file


def test_ranks_of_one_launcher_choose_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setenv("WORLD_SIZE", "2")
    found = set()
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        found.add(run_file(None, "a b/c"))
    assert len(found) == 1
    assert Path(found.pop()).name.startswith("a-b-c-20")


def test_a_name_that_is_taken_gets_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.0)
    first = Path(run_file(None, "x"))
    first.parent.mkdir()
    first.write_text("somebody's")
    assert Path(run_file(None, "x")).stem == f"{first.stem}-2"
    with pytest.raises(RunExistsError, match="never overwritten"):
        run_file(str(first), "x")


@pytest.mark.parametrize("resume", [False, True])
def test_what_is_not_a_file_is_refused_without_advice_to_resume_it(
    tmp_path: Path, resume: bool
) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    for path in (tmp_path, tmp_path / "pipe.db"):
        with pytest.raises(RunFileError, match="is not a file") as error:
            run_file(str(path), "title", resume=resume)
        assert "--resume" not in str(error.value)


def test_a_long_title_names_a_file_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for title in ("x" * 250, "ü" * 200, "a\nb\0c", "…" * 50):
        path = Path(run_file(None, title))
        assert len(os.fsencode(path.name)) < 234
        assert path.name.isprintable()


@pytest.mark.parametrize("to", ["a\0b.db", "x" * 250, "d/" * 300 + "a.db"])
def test_a_path_that_can_never_be_written_is_refused_before_the_script(to: str) -> None:
    with pytest.raises(RunFileError, match="`to` must be"):
        run_file(to, "title")


def test_a_folder_that_was_removed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run_file(None, "title").endswith(".db")
