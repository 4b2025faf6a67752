"""`make release`: what keeps a commit from becoming a release."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tools.release import ROOT, problems


def project(folder: Path, version: str = "1.2.3", changes: str = "") -> Path:
    (folder / "pyproject.toml").write_text(f'[project]\nname = "nethook"\nversion = "{version}"\n')
    (folder / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## [Unreleased]\n{changes}\n## [1.2.3] - 2026-11-18\n\n- first\n"
    )
    (folder / "CITATION.cff").write_text(
        "title: nethook\nversion: 1.2.3\ndate-released: 2026-11-18\nlicense: MIT\n"
    )
    (folder / "README.md").write_text("nethook is version 1.2 and free software.\n")
    return folder


def test_a_commit_that_is_ready(tmp_path: Path) -> None:
    assert problems(project(tmp_path), "") == []
    assert problems(tmp_path, "v1.2.3") == []


@pytest.mark.parametrize(
    ("version", "changes", "tag", "said"),
    [
        ("1.2.4", "", "", ["CHANGELOG.md has no section '## [1.2.4]", "CITATION.cff"]),
        ("1.3.0", "", "", ["no section", "CITATION.cff", "README.md says version 1.2: write 1.3"]),
        ("1.2.3.dev0", "", "", ["is no release", "CHANGELOG.md has no section", "CITATION.cff"]),
        ("1.2.3", "\n- more\n", "", ["unreleased changes"]),
        ("1.2.3", "", "v1.2.4", ["tag v1.2.3"]),
    ],
)
def test_what_stands_in_the_way(
    tmp_path: Path, version: str, changes: str, tag: str, said: list[str]
) -> None:
    found = problems(project(tmp_path, version, changes), tag)
    assert len(found) == len(said)
    for problem, words in zip(found, said, strict=True):
        assert words in problem


def test_the_date_is_the_same_everywhere(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "CITATION.cff").write_text(
        "title: nethook\nversion: 1.2.3\ndate-released: 2026-11-17\nlicense: MIT\n"
    )
    (problem,) = problems(tmp_path, "")
    assert "2026-11-18" in problem


@pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=str)
def test_actions_of_workflows_are_pinned_by_hash(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text())["jobs"]
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert used
    for action in used:
        _, _, revision = action.partition("@")
        assert len(revision) == 40, action
        assert int(revision, 16) >= 0
