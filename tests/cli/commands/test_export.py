"""`nethook export`: its files, and the words of 0.1."""

from __future__ import annotations

from tests.cli.command import run
from tests.figures.shared import training


def test_export_names_its_files(tmp_path):
    done = run("export", training(), "--format", "csv", "--to", tmp_path / "out")
    assert done.exit_code == 0
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == str(tmp_path / "out" / "series.csv")


def test_the_words_of_0_1_still_work(tmp_path):
    done = run("export", training(), "--to", "csv", "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert done.stderr == "nethook export: --to csv is now --format csv.\n"
    assert done.stdout.splitlines()[0] == str(tmp_path / "out" / "series.csv")
    for words in ("--output", "-o", "--to"):
        assert run("report", training(), words, tmp_path / "a.html").exit_code == 0
    old, new = run("check", training()), run("diagnose", training())
    assert (old.exit_code, old.stdout) == (new.exit_code, new.stdout)
    assert "check" not in run("--help").stdout
