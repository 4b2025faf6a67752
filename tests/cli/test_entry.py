"""The entry point: what it imports, and that it imports nothing of the folder it is called in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.running.both import environment


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_run_does_not_import_typer_and_other_commands_do(tmp_path: Path) -> None:
    program = "import sys; print('typer' in sys.modules, sys.argv)"
    (tmp_path / "a.py").write_text(program, encoding="utf-8")
    done = python(tmp_path, "-m", "nethook", "run", "--quiet", "a.py", "--x")
    assert (done.returncode, done.stdout) == (0, "False ['a.py', '--x']\n"), done.stderr
    helped = python(tmp_path, "-m", "nethook", "--help")
    assert "Usage: nethook" in helped.stdout


def test_a_file_in_the_folder_does_not_replace_a_library(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise RuntimeError('mine')", encoding="utf-8")
    assert "Usage: nethook" in python(tmp_path, "-m", "nethook", "--help").stdout
    # With -P Python has not put the folder there, and nothing is taken off its path.
    program = "import sys; before = list(sys.path); from nethook.cli.entry import main\n"
    program += "sys.argv = ['nethook', '--help']\n"
    program += "try: main()\nexcept SystemExit: print(sys.path == before)"
    assert python(tmp_path, "-P", "-c", program).stdout.splitlines()[-1] == "True"
