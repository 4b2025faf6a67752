"""A run as plain data: the numbers are those that went in."""

from __future__ import annotations

import numpy as np
import pytest

import nethook
from nethook.errors import NoSuchSiteError, OptionError
from nethook.figures.panels import panels
from nethook.figures.reading import Reading
from nethook.figures.site_order import order_of, shape_text, tree_rows
from nethook.runs.writing.writer import RunWriter
from tests.figures.made import LAYERS, draw
from tests.figures.shared import training
from tests.runs.made import write_run


@pytest.fixture
def reading():
    return Reading(training())


def test_layers_are_in_order_of_execution(reading):
    assert reading.layers() == [layer[0] for layer in LAYERS]
    grid = reading.needed_grid("gradients")
    assert list(grid.rows)[:3] == ["conv1.weight", "conv1.bias", "block.conv2.weight"]


def test_the_order_is_that_of_first_calls_and_not_that_of_names(tmp_path):
    with RunWriter(tmp_path / "a.db") as writer:
        for at, name in enumerate(["a", "b", "c", "never"]):
            info = {"order": at} | ({"first_call": 3 - at} if name != "never" else {})
            writer.add_site(name, "Linear", info)
        writer.add_site("a.weight", "Parameter", {"owners": ["a"], "order": 0})
    order = order_of(nethook.open_run(tmp_path / "a.db"))
    assert order.sorted(["a", "b", "c", "never", "unheard"]) == ["c", "b", "a", "never", "unheard"]
    assert order.sorted(["a.weight", "b"]) == ["b", "a.weight"]


@pytest.mark.parametrize("step", [0, 59, 119])
def test_numbers_of_a_grid_are_those_of_the_tensors(reading, step):
    data = draw(step, 2, "linear", 0, 60)
    rows = [layer[0] for layer in LAYERS]
    for name, value in (("spread", data.std()), ("mean", data.mean())):
        grid = reading.needed_grid(name)
        assert list(grid.rows) == rows
        np.testing.assert_allclose(grid.last[2, step], value, rtol=1e-3)
    silent = reading.needed_grid("silent")
    assert list(silent.rows) == ["relu1", "block.relu2"]
    dead = (draw(step, 3, "rectifier", 0, 60) == 0).all(axis=0).mean()
    np.testing.assert_allclose(silent.last[1, step], dead)
    ends = reading.needed_grid("ends")
    assert list(ends.rows) == ["act"]
    bounded = draw(step, 5, "bounded", 0, 60)
    near = ((bounded < 0.03) | (bounded > 0.97)).mean()
    np.testing.assert_allclose(ends.last[0, step], near, rtol=1e-3)


def test_norms_and_ratios_are_those_of_the_series(reading):
    run = nethook.open_run(training())
    grads = run.series("fc1.weight", "param_grads")
    norm = reading.row("gradients", "fc1.weight")
    np.testing.assert_allclose(norm.value, grads["rms"] * np.sqrt(240), rtol=1e-3)
    ratio = run.series("fc1.weight", "updates")["rms"] / run.series("fc1.weight", "params")["rms"]
    np.testing.assert_allclose(reading.row("updates", "fc1.weight").value, ratio, rtol=2e-3)


def test_a_long_run_keeps_its_extrema_in_few_columns(tmp_path):
    write_run(tmp_path / "a.db", 3000, 2)
    reading = Reading(tmp_path / "a.db")
    grid = reading.needed_grid("spread")
    assert grid.greatest.shape[1] <= 600
    full = nethook.open_run(tmp_path / "a.db").series("layer1")["std"]
    np.testing.assert_allclose(grid.greatest[1].max(), full.max(), rtol=1e-3)
    np.testing.assert_allclose(grid.least[1].min(), full.min(), rtol=1e-3)
    assert grid.last_step[-1] == 2999


def test_what_a_run_has_not_is_said(reading, tmp_path):
    with pytest.raises(OptionError, match=r"`quantity` must be one of gradients.*; got 'speed'"):
        reading.grid("speed")
    write_run(tmp_path / "a.db", 3)
    with pytest.raises(NoSuchSiteError, match=r"no 'updates' in the phase 'train'; it has silent"):
        Reading(tmp_path / "a.db").needed_grid("updates")
    with RunWriter(tmp_path / "empty.db"):
        pass
    with pytest.raises(NoSuchSiteError, match="nothing to show yet"):
        Reading(tmp_path / "empty.db").needed_grid("spread")


def test_panels_of_the_overview(reading):
    made = {panel.title: panel for panel in panels(reading)}
    assert list(made) == [
        "loss",
        "learning rate",
        "gradient norm",
        "update / weight",
        "val_accuracy",
    ]
    train, evaluation = made["loss"].lines
    assert (train.name, evaluation.name) == ("training", "evaluation")
    assert len(train.value) == 120
    assert train.value[0] == pytest.approx(2.36, abs=0.1)
    rate = made["learning rate"].lines[0]
    # It holds until the step at which it changes.
    assert [rate.value[rate.step == step].tolist() for step in (0, 29, 30, 59)] == [
        [0.1], [0.1], [0.05], [0.05],
    ]  # fmt: skip
    assert rate.step[-1] == 119
    before, used = made["gradient norm"].lines
    assert (before.name, used.name) == ("before clipping", "as used")
    assert before.value.max() > 30 > used.value.max()


def test_a_tree_has_modules_without_a_record_of_their_own(reading):
    rows = {row.address: row for row in tree_rows(reading.order)}
    assert next(iter(rows)) == ""
    assert rows["block"].parameters == rows["block.conv2"].parameters == 480
    assert rows[""].parameters == 4 * 480
    assert rows["block.conv2"].depth == rows["block"].depth + 1
    assert rows["spare"].note == "never called"
    assert rows["conv1"].shape == "64 × 20 × 24 × 24"
    assert list(rows).index("block") == list(rows).index("block.conv2") - 1


def test_shapes():
    assert [shape_text(s) for s in ([2, 3], [], None, ["x"])] == ["2 × 3", "scalar", "", ""]
