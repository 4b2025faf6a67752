"""A view of the disk, in which what is written stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nethook.running.trying.sandbox.folder_view import FolderView
from tests.running.trying.trials import everything


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A project: data beside it, checkpoints and a script in it."""
    for name, text in {
        "data/train.csv": "1,2",
        "project/script.py": "pass",
        "project/checkpoints/last.pt": "old",
        "project/checkpoints/deep/best.pt": "best",
    }.items():
        file = tmp_path / "real" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path / "real"


@pytest.fixture
def view(tmp_path: Path) -> FolderView:
    (tmp_path / "disk").mkdir()
    return FolderView(tmp_path / "disk")


def test_everything_is_found_where_it_was(
    real: Path, view: FolderView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(view.enter(str(real / "project")))
    assert Path("script.py").read_text(encoding="utf-8") == "pass"
    assert Path("checkpoints/deep/best.pt").read_text(encoding="utf-8") == "best"
    assert Path("../data/train.csv").read_text(encoding="utf-8") == "1,2"
    assert Path("../../../" * 9, "etc").is_dir()
    assert Path.cwd() == Path(view.root + str(real / "project"))


def test_what_is_written_stays_in_the_view(
    real: Path, view: FolderView, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(real)
    monkeypatch.chdir(view.enter(str(real / "project")))
    for name in ("script.py", "checkpoints/last.pt", "checkpoints/deep/best.pt", "../data/new"):
        path = view.own(name)
        assert view.holds(path)
        assert os.path.realpath(name) == path
        with open(name, "a", encoding="utf-8") as file:
            file.write("+")
    assert Path("checkpoints/deep/best.pt").read_text(encoding="utf-8") == "best+"
    assert everything(real) == before


def test_a_file_that_is_emptied_is_not_copied(
    real: Path, view: FolderView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(view.enter(str(real / "project")))
    view.own("script.py", empty=True)
    assert Path("script.py").read_bytes() == b""
    assert (real / "project" / "script.py").read_bytes() == b"pass"


def test_an_entry_is_removed_and_not_what_it_stands_for(
    real: Path, view: FolderView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(view.enter(str(real / "project")))
    assert view.holds(view.own("checkpoints/last.pt", follow=False))
    os.remove("checkpoints/last.pt")
    assert (real / "project" / "checkpoints" / "last.pt").exists()


def test_dots_after_a_link_are_followed_as_the_kernel_does(
    real: Path, view: FolderView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(view.enter(str(real / "project")))
    assert view.holds(view.own("checkpoints/../new"))
    os.symlink(real / "data", "away")
    assert view.holds(view.own("away/../away/new"))
    assert Path("away").is_dir()
    assert not Path("away").is_symlink()


def test_paths_outside_are_said_to_be(real: Path, view: FolderView) -> None:
    view.enter(str(real / "project"))
    assert not view.holds(view.own(str(real / "data" / "new")))
    assert not view.holds(view.own("/proc/self/mem"))


def test_a_folder_with_too_much_in_it_is_an_error(
    real: Path, view: FolderView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nethook.running.trying.sandbox.folder_view._MOST", 1)
    with pytest.raises(OSError, match="too many for a view"):
        view.enter(str(real))
