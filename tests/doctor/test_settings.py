"""What a project has set about findings, and what a call adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.doctor.settings import Settings, project_settings
from nethook.errors import OptionError


def test_settings_add_up() -> None:
    project = Settings(frozenset({"a"}), {"dead-units": {"share": 0.1, "error": 0.9}})
    both = project.also(["b"], {"dead-units": {"share": 0.5}})
    assert both.ignore == {"a", "b"}
    assert both.thresholds == {"dead-units": {"share": 0.5, "error": 0.9}}


def test_codes_are_a_list() -> None:
    with pytest.raises(
        OptionError, match=r"`ignore` must be a list of codes; got 'a'\. Type \['a'\]"
    ):
        Settings().also("a", None)


def test_the_nearest_project_file_decides(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    text = "[tool.nethook]\nignore = ['overfitting']\nthresholds.dead-units.share = 1\n"
    (tmp_path / "pyproject.toml").write_text(text)
    found = project_settings(inner)
    assert found.ignore == {"overfitting"}
    assert found.thresholds == {"dead-units": {"share": 1}}
    assert found.path == tmp_path / "pyproject.toml"
    (inner / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert project_settings(inner) == Settings()


@pytest.mark.parametrize("text", ["not [ toml", "[tool]\nnethook = 3\n", "[tool.nethook]\n"])
def test_files_that_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert project_settings(tmp_path) == Settings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.nethook]\nfoo = 1", "must have ignore and thresholds only; got 'foo'"),
        ("[tool.nethook]\nignore = [1]", r"`ignore` must be a list of codes; got \[1\]"),
        ("[tool.nethook.thresholds.a]\nb = true", "must be numbers in a table per code"),
        ("[tool.nethook.thresholds.a]\nb = 'c'", "must be numbers in a table per code"),
    ],
)
def test_settings_that_mean_nothing_name_the_file(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(OptionError, match=rf"pyproject\.toml: .*{words}"):
        project_settings(tmp_path)
