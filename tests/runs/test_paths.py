"""Where a run goes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nethook.errors import RunExistsError, RunFileError
from nethook.runs.paths import new_run_path, rank_files, rank_path


def test_the_time_names_a_run(tmp_path: Path) -> None:
    path = new_run_path(tmp_path / "runs" / "{time}.db")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.db", path.name)
    assert path.parent.is_dir()


def test_two_runs_in_one_second_have_two_names(tmp_path: Path) -> None:
    made = set()
    for _ in range(3):
        path = new_run_path(tmp_path / "{time}.db")
        path.touch()
        made.add(path)
    assert len(made) == 3


def test_an_existing_run_is_refused_and_the_message_says_what_to_type(tmp_path: Path) -> None:
    path = tmp_path / "mnist.db"
    path.write_text("somebody's")
    with pytest.raises(RunExistsError) as caught:
        new_run_path(path)
    assert isinstance(caught.value, FileExistsError)
    assert str(caught.value) == (
        f"{str(path)!r} exists, and a run is never overwritten. Continue it with resume=True, name "
        f"another file, or let the time name it: {str(tmp_path / '{time}.db')!r}."
    )
    assert new_run_path(path, resume=True) == path


@pytest.mark.parametrize("path", ["", "  "])
def test_an_empty_path_is_refused(path: str) -> None:
    with pytest.raises(
        RunFileError, match=r"`to` must be the path of a file; got '.*', which is empty"
    ):
        new_run_path(path)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RunFileError, match=r"`to` must be the path of a file; got .*, which is a folder"
    ):
        new_run_path(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFileError, match="cannot be made"):
        new_run_path(tmp_path / "file" / "run.db")


def test_ranks_lie_beside_one_another(tmp_path: Path) -> None:
    main = tmp_path / "a [x].db"
    for rank in (0, 1, 11):
        rank_path(main, rank).touch()
    (tmp_path / "a [x].rankone.db").touch()
    (tmp_path / "b.rank1.db").touch()
    want = {0: main, 1: tmp_path / "a [x].rank1.db", 11: tmp_path / "a [x].rank11.db"}
    assert rank_files(main) == want
    assert rank_files(tmp_path / "a [x].rank11.db") == want


def test_names_of_ranks_are_taken_as_nethook_spells_them(tmp_path: Path) -> None:
    """Zeros in front, other digits and ranks beyond all machines are other files."""
    main = tmp_path / "a.db"
    for name in ("a.db", "a.rank2.db", "a.rank02.db", "a.rank0.db", "a.rank٣.db"):
        (tmp_path / name).touch()
    (tmp_path / "a.rank99999999999999.db").touch()
    assert rank_files(main) == {0: main, 2: tmp_path / "a.rank2.db"}


def test_a_link_that_leads_nowhere_takes_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.db").symlink_to(tmp_path / "nowhere.db")
    with pytest.raises(RunExistsError):
        new_run_path(tmp_path / "a.db")
