"""`nethook diff`: what it says, and the code that it ends with."""

from __future__ import annotations

from tests.cli.command import run
from tests.figures.shared import changed, training


def test_diff_exits_as_diff_does(tmp_path):
    same = run("diff", training(), training())
    assert same.exit_code == 0
    assert "They are equal" in same.stdout
    other = run("diff", training(), changed(), "--to", tmp_path / "d.html")
    assert other.exit_code == 1
    assert "They diverge at step 61" in other.stdout
    assert other.stdout.endswith(f"{tmp_path / 'd.html'}\n")
    assert (tmp_path / "d.html").exists()
