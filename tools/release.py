"""Checks that a commit can become a release: `make release`, before it is tagged.

    python -m tools.release               # checks everything but the tag
    python -m tools.release --tag v0.2.0  # in the workflow: the tag, too

Checked: pyproject.toml has the version, and README.md and CITATION.cff agree with it; the changelog
has a dated section of it, with the date of CITATION.cff, and nothing unreleased; nothing is
uncommitted. `make release` runs the tests itself.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def problems(root: Path, tag: str) -> list[str]:
    """What stands in the way of a release, in words."""
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        found.append(f"pyproject.toml has version {version}, which is no release: write 1.2.3.")
    changelog = (root / "CHANGELOG.md").read_text()
    section = re.search(
        rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.MULTILINE
    )
    if section is None:
        found.append(f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD'.")
    unreleased = re.search(
        r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if unreleased and unreleased[1].strip():
        found.append("CHANGELOG.md has unreleased changes: move them into the section.")
    citation = (root / "CITATION.cff").read_text()
    if f"\nversion: {version}\n" not in citation:
        found.append(f"CITATION.cff has another version than {version}.")
    if section is not None and f"\ndate-released: {section[1]}\n" not in citation:
        found.append(f"CITATION.cff has another date than the changelog: {section[1]}.")
    minor = ".".join(version.split(".")[:2])
    said = re.search(r"nethook is version (\S+)", (root / "README.md").read_text())
    if said is not None and said[1] not in (minor, version):
        found.append(f"README.md says version {said[1]}: write {minor}.")
    if tag and tag != f"v{version}":
        found.append(f"the tag is {tag}, and pyproject.toml says {version}: tag v{version}.")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print what stands in the way; 1 where something does."""
    parser = argparse.ArgumentParser(description="Check that a commit can become a release.")
    parser.add_argument("--tag", default="", help="the tag, where there is one already")
    options = parser.parse_args(arguments)
    found = problems(ROOT, options.tag)
    status = ["git", "status", "--porcelain", "--untracked-files=no"]
    if subprocess.run(status, cwd=ROOT, capture_output=True, text=True, check=True).stdout:
        found.append("there are uncommitted changes.")
    for problem in found:
        sys.stderr.write(f"release: {problem}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
