"""What can run along the axis of curves besides steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nethook.figures.axes import axes_of
from nethook.figures.reading import Reading
from nethook.runs.writing.writer import RunWriter
from tests.figures.shared import training


def test_time_is_that_of_the_points_since_the_start() -> None:
    reading = Reading(training())
    time = axes_of(reading)["time"]
    loss = reading.run.loss()
    begin = reading.run.info["started"]
    np.testing.assert_allclose(time["at"], loss.time - begin, atol=1e-6)
    assert time["step"] == loss.step.tolist()
    assert "epoch" not in axes_of(reading)


def test_epochs_are_those_that_the_program_logs_and_knots_are_few(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db", capacity=10_000) as writer:
        for step in range(1000):
            writer.log("epoch", step / 100, step)
    epoch = axes_of(Reading(tmp_path / "a.db"))["epoch"]
    assert len(epoch["step"]) <= 200
    np.testing.assert_allclose(np.array(epoch["at"]), np.array(epoch["step"]) / 100)
    assert epoch["step"][-1] == 999


def test_a_run_without_anything_has_steps_alone(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "a.db") as writer:
        writer.log("epoch", 1.0, 0)
    assert axes_of(Reading(tmp_path / "a.db")) == {}
