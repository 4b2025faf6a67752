"""Annotations, read back by the rules that a workflow's runner has for them."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from nethook.exporting.ci.github import github_annotations
from tests.exporting.ci.made import findings

# actions/toolkit, docs/commands.md: `::name key=value,key=value::message`, with %-escapes.
_COMMAND = re.compile(r"^::(\w+) (.*?)::(.*)$")


def read(line: str) -> tuple[str, dict[str, str], str]:
    match = _COMMAND.match(line)
    assert match
    pairs = (pair.split("=", 1) for pair in match[2].split(","))
    return match[1], {name: unquote(value) for name, value in pairs}, unquote(match[3])


def test_each_finding_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = map(read, github_annotations(findings(tmp_path), "1 error").split("\n"))
    assert first[0] == "error"
    assert first[1] == {"file": "train, it.py", "line": "42", "title": "nethook: dead-units"}
    assert first[2].startswith("60 of 64 units (94 %) are silent, <always>: ")
    assert first[2].endswith("next (net.relu, net.a,b)\nFix: Lower the rate, or use LeakyReLU.")
    assert second == ("notice", {"title": "nethook: repeated-batch"}, "one batch")


def test_the_verdict_where_nothing_was_found() -> None:
    assert read(github_annotations([], "no problems found (9 checks, 100 % seen)")) == (
        "notice", {"title": "nethook"}, "no problems found (9 checks, 100 % seen)",
    )  # fmt: skip
