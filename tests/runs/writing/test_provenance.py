"""What ran."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from nethook.runs.writing.provenance import about_this_process, command, git_revision


def test_it_says_what_ran_and_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETHOOK_TEST_SECRET", "do-not-keep-me")
    monkeypatch.setattr(sys, "argv", ["train.py", "--api-key", "do-not-keep-me", "--lr", "1"])
    about = about_this_process()
    assert about["command"][1:] == ["train.py", "--api-key", "***", "--lr", "1"]
    assert {"python", "torch", "numpy", "nethook"} <= set(about["versions"])
    assert about["devices"][0].startswith("cpu")
    assert "do-not-keep-me" not in repr(about)


def test_the_platform_is_named_without_starting_a_process() -> None:
    program = """
import platform, sys
from nethook.runs.writing.provenance import about_this_process

started = []
sys.addaudithook(lambda event, _: started.append(event) if event == "subprocess.Popen" else None)
named = about_this_process()["platform"]
print(list(started), named == platform.platform())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[]", "True"]


def test_versions_are_those_that_the_packages_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = about_this_process()["versions"]
    assert {name: version(name) for name in versions if name != "python"} == {
        name: stated for name, stated in versions.items() if name != "python"
    }
    old = tmp_path / "transformers-1.2.egg-info"  # of another kind, as old tools leave it
    old.mkdir()
    (old / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: transformers\nVersion: 1.2\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert about_this_process()["versions"]["transformers"] == "1.2"


def test_the_script_s_path_is_kept_and_all_arguments_where_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = ["--data", "/data/x", "--name", "two words", "--password", "hunter2"]
    monkeypatch.setattr(sys, "argv", ["/home/me/project/train.py", *arguments])
    python = Path(sys.executable).name
    shown = ["--data", "***", "--name", "***", "--password", "***"]
    assert command() == [python, "/home/me/project/train.py", *shown]
    assert command(keep_args=True) == [python, "/home/me/project/train.py", *arguments]
    monkeypatch.setattr(sys, "argv", [])
    assert command() == [python, ""]


def git(folder: Path, *arguments: str) -> str:
    options = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *options, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "train.py").write_text("1")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def test_the_revision_is_what_git_says(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert git_revision(repository) == {"commit": commit, "branch": "main"}
    (repository / "deep" / "er").mkdir(parents=True)
    assert git_revision(repository / "deep" / "er") == {"commit": commit, "branch": "main"}


def test_packed_and_detached_heads(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "pack-refs", "--all")
    assert git_revision(repository) == {"commit": commit, "branch": "main"}
    git(repository, "checkout", "-q", "--detach")
    assert git_revision(repository) == {"commit": commit}


def test_a_worktree(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    commit = git(repository, "rev-parse", "HEAD")
    assert git_revision(tmp_path / "side") == {"commit": commit, "branch": "side"}


def test_no_repository_and_a_broken_one(tmp_path: Path) -> None:
    assert git_revision(tmp_path) is None
    (tmp_path / ".git").mkdir()
    assert git_revision(tmp_path) is None
