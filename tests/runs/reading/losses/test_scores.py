"""Which accuracies a run has, and what they are called."""

from __future__ import annotations

from pathlib import Path

from nethook.runs.names import score_name
from nethook.runs.reading.losses.scores import shown_scores
from nethook.runs.reading.run import open_run
from nethook.runs.writing.writer import RunWriter


def scores_of(path: Path, **logged: list[float]) -> dict[str, tuple[str, str, list[float]]]:
    with RunWriter(path) as writer:
        writer.log("accuracy", 0.5, 3)  # the script's own
        for line, values in logged.items():
            for step, value in enumerate(values):
                writer.log(score_name(f"{line}.py:4"), value, step)
    with open_run(path) as run:
        return {n: (s.label, s.line, s.ends) for n, s in shown_scores(run.scalars).items()}


def test_the_only_one_needs_no_line_in_its_name(tmp_path: Path) -> None:
    assert scores_of(tmp_path / "a.db", train=[0.1, 0.25, 0.75]) == {
        "accuracy:train.py:4": ("evaluation accuracy", "train.py:4", [0.1, 0.75])
    }


def test_several_are_told_apart_by_their_lines(tmp_path: Path) -> None:
    found = scores_of(tmp_path / "a.db", train=[0.25], test=[0.5, 1.0])
    assert found == {
        "accuracy:train.py:4": ("evaluation accuracy, train.py:4", "train.py:4", [0.25]),
        "accuracy:test.py:4": ("evaluation accuracy, test.py:4", "test.py:4", [0.5, 1.0]),
    }


def test_a_run_without_evaluations_has_none(tmp_path: Path) -> None:
    assert scores_of(tmp_path / "a.db") == {}
