"""`nethook metrics`."""

from __future__ import annotations

from pathlib import Path

import nethook
from nethook.exporting.openmetrics import openmetrics
from tests.cli.command import run
from tests.figures.shared import training


def test_it_prints_the_metrics() -> None:
    done = run("metrics", training())
    assert done.exit_code == 0
    assert done.stdout == openmetrics(nethook.open_run(training()))


def test_a_file_for_a_collector(tmp_path: Path) -> None:
    target = tmp_path / "nethook.prom"
    done = run("metrics", training(), "--to", target)
    assert (done.exit_code, done.stdout) == (0, "")
    assert target.read_text(encoding="utf-8") == openmetrics(nethook.open_run(training()))
    assert list(tmp_path.iterdir()) == [target]


def test_errors_are_one_line(tmp_path: Path) -> None:
    done = run("metrics", tmp_path / "none.db")
    assert done.exit_code == 2
    assert done.stderr.startswith("nethook metrics: ")
    done = run("metrics", training(), "--to", tmp_path)
    assert done.exit_code == 2
    assert "`--to` must be a file that can be written" in done.stderr
