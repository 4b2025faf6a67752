"""The panels of an overview: their numbers are those of the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nethook
from nethook.drawing.data import Line
from nethook.figures.panels import (
    _called,
    _distinct,
    _scale,
    logged_panels,
    loss_panel,
    norm_panel,
    panels,
    rate_panel,
    ratio_panel,
)
from nethook.figures.reading import Reading
from nethook.runs import names
from nethook.runs.writing.writer import RunWriter
from tests.figures.shared import training


@pytest.fixture(scope="module")
def reading() -> Reading:
    return Reading(training())


@pytest.fixture
def empty(tmp_path: Path) -> Reading:
    with RunWriter(tmp_path / "a.db"):
        pass
    return Reading(tmp_path / "a.db")


def test_a_run_with_everything_has_all_panels_in_order(reading: Reading) -> None:
    assert [panel.title for panel in panels(reading)] == [
        "loss", "learning rate", "gradient norm", "update / weight", "val_accuracy",
    ]  # fmt: skip
    assert all(panel.explain for panel in panels(reading))


def test_a_run_with_nothing_has_none(empty: Reading) -> None:
    assert panels(empty) == []


def test_the_loss_in_training_and_in_evaluation(reading: Reading) -> None:
    panel = loss_panel(reading)
    assert panel is not None
    training_line, evaluation = panel.lines
    assert (training_line.name, evaluation.name) == ("training", "evaluation")
    with nethook.open_run(training()) as run:
        series = run.series("@loss:train.py:42", "loss")
        np.testing.assert_array_equal(training_line.value, series["mean"])
        np.testing.assert_array_equal(training_line.step, series.last_step)
    assert evaluation.markers
    np.testing.assert_allclose(evaluation.value, 2.5 * np.exp(-np.arange(20, 120, 30) / 60))


def test_without_series_a_logged_loss_is_drawn(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        for step, value in enumerate([3.0, 2.0, 1.0]):
            writer.log("loss", value, step)
            writer.log("accuracy", 1 - value / 3, step)
    reading = Reading(tmp_path / "a.db")
    panel = loss_panel(reading)
    assert panel is not None
    np.testing.assert_array_equal(panel.lines[0].value, [3.0, 2.0, 1.0])
    assert [own.title for own in logged_panels(reading)] == ["accuracy"]


def test_a_learning_rate_holds_until_it_changes(reading: Reading) -> None:
    panel = rate_panel(reading)
    assert panel is not None
    (line,) = panel.lines
    # A point at every step of a short run: the cursor reads the rate wherever it is.
    np.testing.assert_array_equal(line.step, np.arange(120))
    np.testing.assert_allclose(line.value, 0.1 * 0.5 ** (line.step // 30))
    assert line.held


def test_norms_before_and_after_clipping(reading: Reading) -> None:
    panel = norm_panel(reading)
    assert panel is not None
    assert [line.name for line in panel.lines] == ["before clipping", "as used"]
    before, used = (np.asarray(line.value) for line in panel.lines)
    assert np.all(used <= before)
    assert used.max() <= 5.0
    ratio = ratio_panel(reading)
    assert ratio is not None
    assert ratio.scale == "log"


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1.0, 10.0], "linear"),
        ([1.0, 100.0], "log"),
        ([0.0, 100.0], "linear"),
        ([-1.0, 100.0], "linear"),
        ([1.0, np.nan, 100.0, np.inf], "log"),
        ([np.nan], "linear"),
    ],
)
def test_a_scale_is_logarithmic_where_positive_values_span_decades(
    values: list[float], scale: str
) -> None:
    assert _scale([Line("a", np.arange(len(values)), np.array(values))]) == scale


def test_lines_that_are_the_same_are_one_with_both_names() -> None:
    steps = np.arange(3)
    lines = [
        Line("0.0", steps, np.ones(3)),
        Line("0.1", steps, np.full(3, 2.0)),
        Line("0.2", steps, np.ones(3)),
    ]
    assert [line.name for line in _distinct(lines)] == ["0.0, 0.2", "0.1"]


def test_losses_that_one_line_makes_are_told_apart_in_words() -> None:
    assert _called("train.py:42") == "train.py:42"
    assert _called("train.py:42#1") == "train.py:42, no. 2"
    assert _called("a#b") == "a#b"


def test_norms_are_those_that_are_kept_one_by_one(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db", capacity=10_000) as writer:
        for step in range(600):
            writer.log(names.GRAD_NORM, 1.0 + step, step, keep=names.KEPT_STEPS)
    panel = norm_panel(Reading(tmp_path / "a.db"))
    assert panel is not None
    (line,) = panel.lines
    assert line.step.tolist() == list(range(600))  # to the last of them
    assert line.value.tolist() == [1.0 + step for step in range(600)]


def test_of_a_long_run_a_rate_has_few_points_and_every_change(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        for step, rate in ((0, 1.0), (77_777, 0.5), (99_999, 0.25)):
            writer.log(names.lr_name("0", 0), rate, step)
    panel = rate_panel(Reading(tmp_path / "a.db"))
    assert panel is not None
    (line,) = panel.lines
    assert len(line.step) <= 510
    shown = dict(zip(line.step.tolist(), line.value.tolist(), strict=True))
    assert [shown[step] for step in (0, 77_776, 77_777, 99_998, 99_999)] == [1, 1, 0.5, 0.5, 0.25]
