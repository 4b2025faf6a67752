"""An event file, read back with TensorBoard's own reader."""

from __future__ import annotations

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import nethook
from nethook.exporting.tensorboard import to_tensorboard
from nethook.runs.writing.writer import RunWriter
from tests.runs.made import fold, values, write_run


def read(path):
    events = EventAccumulator(str(path), size_guidance={"scalars": 0, "histograms": 0})
    events.Reload()
    return events


@pytest.fixture
def run(tmp_path):
    write_run(tmp_path / "a.db", 6, 2)
    return nethook.open_run(tmp_path / "a.db")


def test_one_file_with_every_scalar(run, tmp_path):
    (file,) = to_tensorboard(run, tmp_path / "out")
    points = read(file).Scalars("scalars/loss")
    assert [point.step for point in points] == run.scalars["loss"].step.tolist()
    np.testing.assert_allclose(
        [point.value for point in points], run.scalars["loss"].value, rtol=1e-6
    )


def test_a_window_is_a_point_at_its_last_step(run, tmp_path):
    (file,) = to_tensorboard(run, tmp_path / "out")
    events = read(file)
    for column in ("mean", "std", "min", "max", "zero_share"):
        points = events.Scalars(f"outputs/layer1.{column}")
        series = run.series("layer1")
        assert [point.step for point in points] == series.last_step.tolist()
        np.testing.assert_allclose(
            [point.value for point in points], series[column], rtol=1e-6, atol=1e-12
        )


def test_histograms_count_every_element(run, tmp_path):
    (file,) = to_tensorboard(run, tmp_path / "out")
    for point in read(file).Histograms("outputs/layer0"):
        data = values(0, point.step)
        made = point.histogram_value
        assert made.num == sum(made.bucket) == data.size
        # The buckets up to a limit hold as many elements as numpy counts; -0.0 ends those below 0.
        limits = np.array(made.bucket_limit)
        zero = np.signbit(limits) & (limits == 0)
        below = np.where(zero, (data < 0).sum(), (data[:, None] <= limits).sum(axis=0))
        np.testing.assert_array_equal(np.cumsum(made.bucket), below)


def test_numbers_of_the_loop_and_other_phases_have_names_of_their_own(tmp_path):
    with RunWriter(tmp_path / "a.db") as writer:
        writer.add_series("@loop", "grad_norm")
        for phase in ("train", "eval"):
            window = writer.window(phase)
            fold(window, 0, [0])
            writer.submit(window)
    (file,) = to_tensorboard(nethook.open_run(tmp_path / "a.db"), tmp_path / "out")
    assert sorted(read(file).Tags()["scalars"]) == ["eval/grad_norm/@loop", "grad_norm/@loop"]


def test_of_a_long_series_a_thousand_points_with_both_ends(tmp_path):
    write_run(tmp_path / "a.db", 1100, 1)
    (file,) = to_tensorboard(nethook.open_run(tmp_path / "a.db"), tmp_path / "out")
    steps = [point.step for point in read(file).Scalars("outputs/layer0.mean")]
    series = nethook.open_run(tmp_path / "a.db").series("layer0")
    assert len(steps) == min(1000, len(series))
    assert (steps[0], steps[-1]) == (series.last_step[0], series.last_step[-1])
    assert set(steps) <= set(series.last_step.tolist())
