"""`nethook demo`: a mistake, its verdict and proven fix, the same script without it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from nethook.cli.commands import demo
from tests.running.both import Warm


@pytest.mark.parametrize(
    ("called", "shown"),
    [
        (".venv-demo/bin/nethook", ".venv-demo/bin/nethook"),
        ("/a b/bin/nethook", "'/a b/bin/nethook'"),
        ("src/nethook/__main__.py", "/usr/bin/python -m nethook"),
    ],
)
def test_the_commands_that_it_shows_can_be_typed_where_nethook_is_not_found(
    monkeypatch: pytest.MonkeyPatch, called: str, shown: str
) -> None:
    monkeypatch.setattr(sys, "argv", [called, "demo"])
    monkeypatch.setattr(sys, "executable", "/usr/bin/python")
    monkeypatch.setattr(demo, "which", lambda name: None)
    assert demo._command() == shown
    monkeypatch.setattr(demo, "which", lambda name: f"/bin/{name}")
    assert demo._command() == "nethook"


def test_the_demo_finds_a_mistake_and_proves_its_fix(tmp_path: Path) -> None:
    warm = Warm()
    folder = tmp_path / "folder"
    folder.mkdir()
    done = warm.run("-m", "nethook", "demo", "--to", "out", cwd=folder)
    warm.stop()
    assert done.code == 0
    assert done.err.splitlines() == [
        "nethook: trial 1 of 2, the script as it is",
        "nethook: trial 2 of 2, zero_grad() after each step",
    ]
    commands = r"\$ nethook run (?:--try-fix )?out/digits(?:_fixed)?\.py\n"
    _, faulty, fixed = re.split(commands, done.out)
    assert "error: missing-zero-grad (steps 1 to 191)" in faulty
    assert re.search(r"nobody clears them\s+\(digits\.py:\d+\)", faulty)
    losses = r"training loss after 192 steps 0\.\d+ → 0\.0\d+\. It helped\."
    said = " ".join(faulty.split())
    assert re.search(rf"tried: zero_grad\(\) after each step: {losses}", said)
    assert "optimizer.zero_grad():" in faulty.splitlines()[-2]
    assert "100% of 128 new digits are read correctly" in fixed
    assert re.search(r"no problems found \(\d+ checks, 192 steps", fixed)
    assert re.search(r"  both runs in the browser:    (?:\S+ -m )?nethook ui out --open\n", fixed)
    report = folder / "out" / Path(done.out.splitlines()[-1].rpartition("/")[2])
    assert done.out.endswith(f" {report.as_uri()}\n")
    assert report.is_file()
    for script, has_line in (("digits.py", False), ("digits_fixed.py", True)):
        assert ("optimizer.zero_grad()" in (folder / "out" / script).read_text()) is has_line
