"""Which steps share a window: those in which nothing was due go on in one."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.runs import names
from nethook.runs.writing.writer import RunWriter
from nethook.watching.budget import Budget
from nethook.watching.measuring.window import DETAIL, QUIET, QUIET_AWAY


def train(
    path, monkeypatch, every: int, steps: int = 150, away: bool = False, **options: object
) -> list[float]:
    """A run in which each quantity is due in every so many steps; the losses."""
    monkeypatch.setattr(Budget, "_look", lambda self: False)
    monkeypatch.setattr(Budget, "_has_time_for_a_whole_step", lambda self: False)
    monkeypatch.setattr(Budget, "may_write", lambda self: True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x, y = torch.randn(16, 4), torch.randint(3, (16,))
    losses = []
    with nethook.watch(model, optimizer, to=path, **options) as watch:
        watch._session.schedule.budget.every = every
        watch._session.journal.train.has_devices = away
        for step in range(steps):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
            watch._session.journal.writer.flush()  # windows also merge where the writer is behind
            if step == 99:
                watch._session.journal.event("note", "something happened")
    return losses


def test_steps_in_which_nothing_was_due_share_a_window(tmp_path, monkeypatch):
    losses = train(tmp_path / "run.db", monkeypatch, every=60)
    with nethook.open_run(tmp_path / "run.db") as run:
        windows = run.series(names.LOOP, names.STEP_SECONDS)
        assert len(windows) < 40
        assert int(windows.steps.max()) > 8
        assert int(windows.steps.max()) <= QUIET
        # No step is lost, none is counted twice, and the loss has all its points.
        assert int(windows.steps.sum()) == 150
        assert list(windows.first_step[1:]) == [last + 1 for last in windows.last_step[:-1]]
        (name,) = run.info["losses"]
        course = run.series(names.loss_address(name), names.LOSS)
        assert int(course["count"].sum()) == 150
        assert float(course["max"].max()) == max(losses)
        assert run.scalars[names.loss_name(name)].value.tolist() == losses


def test_where_numbers_wait_on_a_device_fewer_do(tmp_path, monkeypatch):
    """More than 64 that wait for the end of a window would be given up."""
    train(tmp_path / "run.db", monkeypatch, every=60, away=True)
    with nethook.open_run(tmp_path / "run.db") as run:
        windows = run.series(names.LOOP, names.STEP_SECONDS)
        assert 8 < int(windows.steps.max()) <= QUIET_AWAY
        assert int(windows.steps.sum()) == 150


def test_what_was_measured_and_what_happened_ends_one(tmp_path, monkeypatch):
    train(tmp_path / "run.db", monkeypatch, every=60)
    with nethook.open_run(tmp_path / "run.db") as run:
        windows = run.series(names.LOOP, names.STEP_SECONDS)
        ends = set(windows.last_step.tolist())
        outputs = run.series("0", names.OUTPUTS)
        measured = [
            (first, last)
            for first, last, seen in zip(
                outputs.first_step, outputs.last_step, outputs.seen, strict=True
            )
            if seen
        ]
        assert measured
        assert all(last in ends for _, last in measured)
        assert 100 in ends  # the event of the step that began with the 100th


def test_where_nothing_is_thinned_every_step_has_its_window(tmp_path, monkeypatch):
    train(tmp_path / "run.db", monkeypatch, every=1, steps=40, budget=None)
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.series(names.LOOP, names.STEP_SECONDS).steps.tolist() == [1] * 40


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [3, 11])
def test_an_interrupt_at_the_handing_over_loses_no_step_and_doubles_none(
    tmp_path, monkeypatch, at, after
):
    hand_over, calls = RunWriter.hand_over, []

    def interrupted(writer, window, why=""):
        calls.append(window)
        if len(calls) == at and not after:
            raise KeyboardInterrupt
        handed = hand_over(writer, window, why)
        if len(calls) == at:
            raise KeyboardInterrupt
        return handed

    monkeypatch.setattr(RunWriter, "hand_over", interrupted)
    monkeypatch.setattr("nethook.watching.measuring.window.DETAIL", 20)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x, y = torch.randn(16, 4), torch.randint(3, (16,))
    means, caught = [], 0
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None) as watch:
        for _ in range(20):
            optimizer.zero_grad()
            output = model(x)
            means.append(output.detach().double().mean().item())
            F.cross_entropy(output, y).backward()
            try:
                optimizer.step()
            except KeyboardInterrupt:
                caught += 1
            watch._session.journal.writer.flush()
    assert caught == 1
    with nethook.open_run(tmp_path / "run.db") as run:
        outputs = run.series("", names.OUTPUTS)
        assert int(outputs.steps.sum()) == 20
        assert list(outputs.first_step[1:]) == [last + 1 for last in outputs.last_step[:-1]]
        assert outputs["count"].sum() == 20 * 16 * 3
        assert (outputs["mean"] * outputs["count"]).sum() == pytest.approx(sum(means) * 48)
        histograms = run.histograms("", names.OUTPUTS)
        assert histograms.counts.sum() == 20 * 16 * 3


def test_the_histograms_of_the_last_steps_are_kept_however_soon_the_run_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("nethook.watching.measuring.window.CARRY", 1e6)  # none carries any
    monkeypatch.setattr(Budget, "may_write", lambda self: True)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None) as watch:
        for _ in range(DETAIL + 10):
            model(torch.randn(16, 4)).sum().backward()
            optimizer.step()
            watch._session.journal.writer.flush()
    with nethook.open_run(tmp_path / "run.db") as run:
        outputs = run.series("", names.OUTPUTS)
        assert outputs.steps.tolist() == [1] * (DETAIL + 10)
        assert run.histograms("", names.OUTPUTS).counts.sum() == outputs["count"].sum()


def test_what_a_step_has_measured_that_never_ended_is_in_no_histogram(tmp_path):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None) as watch:
        watch.be_silent()
        for _ in range(3):
            model(torch.randn(16, 4)).sum().backward()
            optimizer.step()
        model(torch.randn(16, 4))  # no step comes of it
    with nethook.open_run(tmp_path / "run.db") as run:
        outputs = run.series("", names.OUTPUTS)
        assert outputs["count"].sum() == 3 * 16 * 3
        assert run.histograms("", names.OUTPUTS).counts.sum() == 3 * 16 * 3
