"""Taking a run back to a step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nethook
from nethook.runs.format.levels import GROUP
from nethook.runs.names import is_own_scalar
from nethook.runs.writing.writer import RunWriter
from tests.runs.made import fold, loss_point, write_run


def check_equal(one: Path, other: Path) -> None:
    """Two runs have the same numbers, in every form in which they can be asked for."""
    a, b = nethook.open_run(one), nethook.open_run(other)
    for layer in ("layer0", "layer1", "layer2"):
        first, second = a.series(layer), b.series(layer)
        assert np.array_equal(first.rows, second.rows)
        assert np.array_equal(first.last_step, second.last_step)
        assert np.array_equal(a.histograms(layer).counts, b.histograms(layer).counts)
        assert np.array_equal(a.units(layer).active, b.units(layer).active)
    for points in (1, 3, 30, 1000):
        first, second = a.overview(points=points), b.overview(points=points)
        assert np.array_equal(first.course, second.course, equal_nan=True)
        assert np.array_equal(first.last_step, second.last_step)
    for name in a.scalars:
        assert np.array_equal(a.scalars[name].step, b.scalars[name].step)
        assert np.array_equal(a.scalars[name].value, b.scalars[name].value)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(first=st.integers(1, 90), at=st.integers(0, 90), then=st.integers(1, 40))
def test_a_run_that_was_taken_back_is_as_if_it_had_never_gone_further(
    tmp_path_factory: pytest.TempPathFactory, first: int, at: int, then: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    at = min(at, first)
    write_run(folder / "a.db", first, seed=1)
    write_run(folder / "a.db", then, seed=2, resume=True, step=at)
    if at:
        write_run(folder / "b.db", at, seed=1)
    write_run(folder / "b.db", then, seed=2, resume=True)
    check_equal(folder / "a.db", folder / "b.db")


def test_overviews_of_every_level_are_taken_back(tmp_path: Path) -> None:
    write_run(tmp_path / "a.db", 520, seed=1)  # one record of the third level, and a little more
    write_run(tmp_path / "a.db", 30, seed=2, resume=True, step=515)
    write_run(tmp_path / "a.db", 40, seed=3, resume=True, step=8 * GROUP - 3)
    write_run(tmp_path / "b.db", 8 * GROUP - 3, seed=1)
    write_run(tmp_path / "b.db", 40, seed=3, resume=True)
    a, b = nethook.open_run(tmp_path / "a.db"), nethook.open_run(tmp_path / "b.db")
    for points in (1, 3, 30, 1000):
        one, other = a.overview(points=points), b.overview(points=points)
        assert np.array_equal(one.course, other.course, equal_nan=True)


def test_a_window_that_has_the_step_in_it_goes_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with RunWriter(path) as writer:
        writer.add_series("x", "outputs")
        for first in range(0, 60, 10):
            window = writer.window()
            for step in range(first, first + 10):
                fold(window, step, [0])
                writer.log("loss:a.py:1", float(step), step)
            while writer.submit(window) is window:
                writer.flush()
        window = writer.window("eval")
        for step in (25, 26):
            fold(window, step, [0])
            while (next_window := writer.submit(window)) is window:
                writer.flush()
            window = next_window
    with RunWriter(path, resume=True, step=25) as writer:
        assert writer.next_step == 25
    run = nethook.open_run(path)
    assert run.events[-1].message.endswith(
        "; steps 20 to 24 shared a window with these and went too"
    )
    assert run.series("x").last_step.tolist() == [9, 19]
    assert run.series("x", phase="eval").last_step.tolist() == [25]  # it was made before step 25
    assert run.histograms("x").last_step.tolist() == [9, 19]
    assert run.scalars["loss:a.py:1"].step.tolist() == list(range(25))


def test_points_of_many_chunks_are_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with RunWriter(path) as writer:
        for step in range(1500):
            writer.log("loss:a.py:1", float(step), step)
            writer.log("mine", float(step), step)
        fold_one(writer, range(1500))
    with RunWriter(path, resume=True, step=400) as writer:
        writer.log("mine", -1.0, 400)
    run = nethook.open_run(path)
    assert run.scalars["loss:a.py:1"].step.tolist() == list(range(400))
    assert run.scalars["mine"].step.tolist() == list(range(401))
    assert run.scalars["mine"].value[-1] == -1.0  # the later one counts


def test_what_the_script_logged_after_the_last_step_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with RunWriter(path) as writer:
        fold_one(writer, range(3))
        writer.log("val_accuracy", 0.5, 3)
        writer.log("loss:a.py:1", 0.5, 3)  # of a step that was cut off
    with RunWriter(path, resume=True) as writer:
        assert writer.next_step == 3
    run = nethook.open_run(path)
    assert run.scalars["val_accuracy"].step.tolist() == [3]
    assert len(run.scalars["loss:a.py:1"]) == 0


def fold_one(writer: RunWriter, steps: range) -> None:
    """All steps in one window."""
    writer.add_series("x", "outputs")
    window = writer.window()
    for step in steps:
        fold(window, step, [0])
    writer.submit(window)
    writer.flush()


def test_events_and_findings_go_with_steps_that_are_trained_again_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with write_run(path, 10, close=False) as writer:
        writer.event("early", 2)
        writer.event("non-finite", 9)
        writer.event("crashed", 10)  # in the step that was cut off
        writer.findings([{"code": "a", "severity": "error"}])
        writer.loss("a", 9, {})
        writer.loss("a", 10, {})
    with RunWriter(path, resume=True):
        pass
    run = nethook.open_run(path)
    kinds = [event.kind for event in run.events]
    assert kinds == ["early", "non-finite", "crashed", "resumed"]
    assert [loss.step for loss in run.losses] == [9]
    assert len(run.findings) == 1
    with RunWriter(path, resume=True, step=8):
        pass
    run = nethook.open_run(path)
    assert [event.kind for event in run.events] == ["early", "resumed"]
    dropped = run.events[-1].data["dropped_events"]
    assert dropped == {"crashed": 1, "non-finite": 1, "resumed": 1}
    assert not run.losses
    assert not run.findings


def test_own_scalars_are_told_from_the_scripts() -> None:
    own = ("loss:a.py:1", "lr:0.1", "grad_norm", "update_ratio", "params_fingerprint:0of2")
    assert all(map(is_own_scalar, own))
    assert not any(map(is_own_scalar, ("loss", "lr", "grad_norms", "val_accuracy")))


def test_an_evaluation_at_the_step_stays_until_it_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with RunWriter(path) as writer:
        fold_one(writer, range(6))
        for step in (2, 4, 6):
            writer.log_points("eval_loss:a.py:9", [loss_point(step, 1.0, 5)])
    with RunWriter(path, resume=True, step=4):
        pass
    assert nethook.open_run(path).loss(phase="eval").step.tolist() == [2, 4]
    with RunWriter(path, resume=True, step=4) as writer:
        writer.log_points("eval_loss:a.py:9", [loss_point(4, 3.0, 5), loss_point(6, 2.0, 5)])
    curve = nethook.open_run(path).loss(phase="eval")
    assert curve.step.tolist() == [2, 4, 6]
    assert curve.shown.tolist() == [1.0, 3.0, 2.0]
