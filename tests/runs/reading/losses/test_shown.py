"""Which losses are shown: what the program logged itself, then what was seen."""

from __future__ import annotations

import math

import pytest

from nethook.runs import names
from nethook.runs.reading.losses.shown import LOGGED, phase_of, shown_losses
from nethook.runs.reading.run import open_run
from nethook.runs.writing.writer import RunWriter
from tests.runs.made import loss_point as point


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        *[(name, "train") for name in ("loss", "train_loss", "train/loss", "Loss/train")],
        *[
            (name, "eval")
            for name in ("eval_loss", "val_loss", "val/loss", "loss/val", "Test_Loss")
        ],
        *[(name, None) for name in ("lossless", "accuracy", "val_accuracy", "aux_loss", "")],
    ],
)
def test_usual_names_of_a_loss(name, phase):
    assert phase_of(name) == phase


def test_the_programs_own_number_stands_first(tmp_path):
    with RunWriter(tmp_path / "run.db") as writer:
        for step in range(4):
            writer.log_points(names.loss_name("a.py:1"), [point(step, 2.0 - step / 4, 8)])
        writer.log_points(names.loss_name("a.py:9", "eval"), [point(3, 0.5, 100)])
        writer.log("val_loss", 0.75, 3)
        writer.log("val_accuracy", 0.9, 3)
        writer.log("train_loss", 1.5, 3)
    with open_run(tmp_path / "run.db") as run:
        shown = shown_losses(run)
        assert [(loss.phase, loss.name, loss.counted, loss.last) for loss in shown] == [
            ("train", "train_loss", LOGGED, 1.5),
            ("train", "a.py:1", "mean over samples", 1.25),
            ("eval", "val_loss", LOGGED, 0.75),
            ("eval", "a.py:9", "mean over samples", 0.5),
        ]
        assert shown[1].source == "a.py:1, mean over samples"
        assert [loss.label for loss in shown] == ["loss"] * 2 + ["evaluation loss"] * 2
        assert [loss.name for loss in shown_losses(run, "eval")] == ["val_loss", "a.py:9"]
        assert [loss.ends for loss in shown] == [(1.5,), (2.0, 1.25), (0.75,), (0.5,)]
        assert "loss 1.5 (logged by the program)" in repr(run)


def test_a_line_is_numbered_only_where_it_has_several_losses(tmp_path):
    with RunWriter(tmp_path / "run.db") as writer:
        for name, phase in (("a.py:1", "train"), ("a.py:1#1", "eval"), ("b.py:2", "train")):
            writer.log_points(names.loss_name(name, phase), [point(0, 2.0, 8)])
        writer.log_points(names.loss_name("b.py:2#1"), [point(0, 1.0, 8)])
    with open_run(tmp_path / "run.db") as run:
        said = [(loss.phase, loss.source.partition(",")[0]) for loss in shown_losses(run)]
    assert said == [
        ("train", "a.py:1"), ("train", "b.py:2"), ("train", "b.py:2#1"), ("eval", "a.py:1"),
    ]  # fmt: skip


def test_the_end_of_a_run_that_diverged_is_not_hidden(tmp_path):
    with RunWriter(tmp_path / "run.db") as writer:
        points = [point(0, 8.71, 4), point(1, 0.761, 4), point(2, math.nan, 4)]
        writer.log_points(names.loss_name("a.py:1"), points)
    (loss,) = shown_losses(open_run(tmp_path / "run.db"))
    assert loss.first == 8.71
    assert math.isnan(loss.last)
    assert loss.finite
