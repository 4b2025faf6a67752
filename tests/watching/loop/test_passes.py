"""Passes without gradient: evaluation, or something else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import nethook
from nethook.runs import names
from nethook.runs.writing.writer import RunWriter
from nethook.watching.loop.passes import BATCHES, SAMPLES, SINGLES, Passes
from nethook.watching.losses.tally import Batch
from nethook.watching.losses.values import LossValues
from nethook.watching.recorder import Recorders
from nethook.watching.series import Catalogue
from tests.watching.fakes import at, journal


@pytest.fixture
def of(tmp_path):
    writer = RunWriter(tmp_path / "run.db")
    catalogue = Catalogue(writer, 16)
    of = journal(
        writer=writer, catalogue=catalogue, row=catalogue.row, off=catalogue.new_rows(), calls=[],
        handed=[],
    )  # fmt: skip
    of.order = SimpleNamespace(note=of.calls.append)
    of.losses = SimpleNamespace(no_grad_loss=lambda *args: True)
    of.hand_in = of.handed.append
    of.scores = SimpleNamespace(compared=lambda *args: True)
    of.passes = Passes(of, of.losses, of.scores, of.order)
    of.values = LossValues(of, None)
    of.recorders = Recorders()
    yield of
    writer.close()


def phase_of(of, module: nn.Module, batches: list[torch.Tensor], calls: int = 1) -> str:
    ended = []
    of.recorders.pass_ended[:] = [ended.append]
    for batch in batches:
        for _ in range(calls):
            of.passes.begin(module, (batch,))
    of.passes.end(of.recorders)
    return ended[0]


def batches(count: int, samples: int = 8) -> list[torch.Tensor]:
    return [torch.randn(samples, 2) for _ in range(count)]


def test_evaluation_mode_makes_an_evaluation(of):
    assert phase_of(of, nn.Identity().eval(), batches(1)) == "eval"
    assert of.clock.totals["evaluations"] == 1


def test_in_training_mode_a_run_of_different_batches_does(of):
    assert phase_of(of, nn.Identity(), batches(BATCHES)) == "eval"
    assert phase_of(of, nn.Identity(), batches(BATCHES - 1)) == "aux"
    assert of.clock.totals["evaluations"] == 1


def test_one_batch_that_is_asked_about_often_does_not(of):
    assert phase_of(of, nn.Identity(), batches(1), calls=20) == "aux"


def test_states_of_an_environment_do_not(of):
    assert phase_of(of, nn.Identity(), batches(20, samples=SAMPLES - 1)) == "aux"


def test_a_loss_that_is_taken_of_it_does(of):
    ended = []
    of.recorders.pass_ended.append(ended.append)
    of.passes.begin(nn.Identity(), (torch.ones(1, 2),))
    with torch.no_grad():
        torch.nn.functional.mse_loss(torch.ones(2), torch.zeros(2))
    of.passes.end(of.recorders)
    assert ended == ["eval"]
    original = torch.nn.functional.mse_loss
    assert not hasattr(original, "__wrapped__")  # nothing is wrapped any more


def test_numbers_of_a_pass_are_those_of_its_phase(of):
    of.passes.begin(nn.Identity().eval())
    of.values.evaluated("val", Batch(2.0))
    of.values.evaluated("val", Batch(torch.tensor(4.0)))
    of.passes.end(of.recorders)
    of.passes.finish()
    of.writer.close()
    with nethook.open_run(of.writer.path) as run:
        course = run.series(names.loss_address("val"), names.LOSS, phase="eval")
        assert (course["mean"].tolist(), course["count"].tolist()) == ([3.0], [2])


def test_phases_that_nobody_wants_are_forgotten(of):
    of.options.phases = ("train",)
    of.passes.begin(nn.Identity().eval())
    of.values.evaluated("val", Batch(2.0))
    of.passes.end(of.recorders)
    of.passes.finish()
    assert of.handed == []
    assert not of.off.seen.any()


@pytest.mark.parametrize(
    ("interrupted", "windows"),
    [
        ("", [1, 20, 20, 20, 9]),
        ("before", [2, 20, 20, 20, 8]),
        ("after", [1, 1, 20, 20, 20, 8]),
    ],
)
def test_passes_share_a_window_and_an_interrupt_neither_loses_nor_doubles_one(
    of, interrupted, windows
):
    passes, hand_over = of.passes, of.writer.hand_over
    of.hand_in = of.writer.hand_over
    left = [interrupted]

    def interrupt(window):
        when, left[0] = left[0], ""
        if when == "before":
            raise KeyboardInterrupt
        handed = hand_over(window)
        if when == "after":
            raise KeyboardInterrupt
        return handed

    of.writer.hand_over = interrupt
    passes._counts["eval"] = 20_000  # so late a window has 20 passes
    values = [float(value) for value in range(70)]
    for step, value in enumerate(values):
        at(of, step)
        passes.begin(nn.Identity().eval())
        of.values.evaluated("val", Batch(value))
        try:
            passes.end(of.recorders)
        except KeyboardInterrupt:
            assert interrupted
        of.writer.flush()
    of.writer.hand_over = hand_over
    passes.finish()
    of.writer.close()
    with nethook.open_run(of.writer.path) as run:
        course = run.series(names.loss_address("val"), names.LOSS, phase="eval")
        assert course.steps.tolist() == windows
        assert int(course.steps.sum()) == course["count"].sum() == len(values)
        assert (course["mean"] * course["count"]).sum() == pytest.approx(sum(values))
        assert (course["min"].min(), course["max"].max()) == (0.0, 69.0)


def test_a_pass_is_one_call_in_the_order_of_calls(of):
    for _ in range(3):
        of.passes.begin(nn.Identity())
    of.passes.end(of.recorders)
    assert of.calls == ["evaluation"]


def test_samples_one_by_one_are_an_evaluation_of_a_model_with_batch_norms(of):
    singles = batches(SINGLES, samples=1)
    assert phase_of(of, nn.Linear(2, 2), singles) == "aux"  # states of an environment
    assert phase_of(of, nn.BatchNorm1d(2), singles[:-1]) == "aux"
    assert phase_of(of, nn.BatchNorm1d(2, track_running_stats=False), singles) == "aux"
    assert phase_of(of, nn.BatchNorm1d(2), [singles[0]] * 40) == "aux"  # one of them, many times
    assert phase_of(of, nn.BatchNorm1d(2), batches(SINGLES, samples=1)) == "eval"
    assert phase_of(of, nn.Dropout(0.5), batches(SINGLES, samples=1)) == "eval"
    assert phase_of(of, nn.Dropout(0.0), batches(SINGLES, samples=1)) == "aux"


def test_dropout_that_is_asked_several_times_about_each_batch_is_no_evaluation(of):
    assert phase_of(of, nn.Dropout(0.5), batches(SINGLES, samples=1), calls=5) == "aux"
    assert phase_of(of, nn.Dropout(0.5), batches(BATCHES + 3), calls=5) == "aux"
