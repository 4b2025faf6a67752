"""A run in one line of the list."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import numpy as np
import pytest

from nethook.page.folder import Entry, Folder
from nethook.page.summaries import Summaries, spark_line, summary_of
from nethook.runs.writing.writer import RunWriter
from tests.figures.shared import training


def entry(path: Path) -> Entry:
    return Entry("id", path, path.stem)


def points(picture: str) -> list[tuple[float, float]]:
    """The points of a spark line, from its `data:` address."""
    svg = base64.b64decode(picture.partition("base64,")[2]).decode()
    (text,) = re.findall(r'polyline points="([^"]*)"', svg)
    return [tuple(map(float, pair.split(","))) for pair in text.split()]


def test_a_run_with_findings() -> None:
    summary = summary_of(entry(training()))
    assert (summary.state, summary.steps, summary.severity) == ("finished", 120, "error")
    assert summary.verdict == "1 error, 1 warning, 1 note"
    assert re.fullmatch(r"[\d.]+ → [\d.]+", summary.loss)
    assert summary.spark.startswith("data:image/svg+xml;base64,")


def test_where_a_run_is_from(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        models = {"": {"type": "Net", "parameters": 1234}}
        writer.info(command=["python", "src/train.py", "--seed", "3"], models=models)
    summary = summary_of(entry(tmp_path / "a.db"))
    assert summary.origin == {"script": "train.py", "model": "Net, 1,234 parameters"}
    assert summary.settings["seed"] == "3"


@pytest.mark.parametrize(
    ("info", "verdict"),
    [
        ({}, ("not judged", "quiet")),
        ({"diagnosis": {"checks": 40}}, ("not judged", "quiet")),  # of no step
        ({"diagnosis": {"checks": 40}, "totals": {"steps": 99}}, ("no problems found", "good")),
    ],
)
def test_a_run_without_findings(
    tmp_path: Path, info: dict[str, object], verdict: tuple[str, str]
) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.info(**info)
    summary = summary_of(entry(tmp_path / "a.db"))
    assert (summary.verdict, summary.severity) == verdict
    assert (summary.steps, summary.loss, summary.spark) == (0, "", "")


def test_a_crash_does_not_hide_what_was_found(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.info(ended={"error": "ValueError: x"})
        writer.findings([{"code": "a", "severity": "warning", "message": "m", "first_step": 0}])
    summary = summary_of(entry(tmp_path / "a.db"))
    assert (summary.verdict, summary.severity) == ("1 warning", "error")


def test_a_file_that_is_no_run_says_why(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"x" * 4096)
    for path in (tmp_path / "a.db", tmp_path / "none.db"):
        summary = summary_of(entry(path))
        assert summary.state == "broken"
        assert summary.problem


def test_a_summary_is_known_until_the_run_changes(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.log("loss", 1.0, 0)
    (run,) = Folder(tmp_path).entries()
    summaries = Summaries()
    assert summaries.known(run) is None
    made = summaries.make(run)
    assert summaries.known(run) is made
    with RunWriter(tmp_path / "a.db", resume=True) as writer:
        writer.log("loss", 2.0, 1)
    assert summaries.known(run) is None


def test_a_spark_line_is_over_steps() -> None:
    shown = points(spark_line(np.array([0, 1, 4]), np.array([3.0, 1.0, 2.0])))
    assert [x for x, _ in shown] == [2.0, 31.0, 118.0]  # where the steps are
    assert [y for _, y in shown] == [3.0, 23.0, 13.0]  # the largest is at the top
    assert len(points(spark_line(np.arange(10_000), np.arange(10_000.0)))) == 120
    level = points(spark_line(np.arange(4), np.ones(4)))
    assert {y for _, y in level} == {13.0}


def test_a_loss_that_fell_early_falls_at_the_left() -> None:
    step = np.arange(1000)
    shown = points(spark_line(step, np.where(step < 100, 2.0, 0.5)))
    fallen = min(x for x, y in shown if y > 20)
    assert fallen < 2 + 0.13 * 116


def test_a_spark_line_of_several_decades_is_logarithmic() -> None:
    shown = points(spark_line(np.arange(3), np.array([1.0, 10.0, 100.0])))
    assert [y for _, y in shown] == [23.0, 13.0, 3.0]


def test_settings_and_metrics_are_columns(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.info(command=["python", "train.py", "--lr", "0.1"], optimizers={"0": "AdamW"})
        writer.log("loss", 0.25, 3)
        writer.log("accuracy", 0.9, 3)
    summary = summary_of(entry(tmp_path / "a.db"))
    assert summary.settings["lr"] == "0.1"
    assert summary.settings["optimizer"] == "AdamW"
    assert summary.metrics == {"loss": 0.25, "accuracy": 0.9}
    assert summary.course[0].tolist() == [3]


def test_runs_are_read_ahead_in_a_thread(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with RunWriter(tmp_path / f"{name}.db") as writer:
            writer.log("loss", 1.0, 0)
    entries = Folder(tmp_path).entries()
    summaries = Summaries()
    assert [summaries.last(entry) for entry in entries] == [None, None]
    summaries.read_ahead(entries)
    assert summaries._reader is not None
    summaries._reader.join(20)
    assert all(summaries.known(entry) is not None for entry in entries)
