"""The other calls of a loop: counted once, in order, with the right factor."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.optim import lr_scheduler

import nethook
from nethook.runs import names
from nethook.watching.hooks.wrappers import _schedulers


@pytest.fixture
def loop(tmp_path):
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def run(body, steps=3, **options):
        with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None) as watch:
            watch.be_silent()
            for step in range(steps):
                body(model, optimizer, step, **options)
        return nethook.open_run(tmp_path / "run.db")

    run.optimizer = optimizer
    return run


def means(run, quantity: str) -> list[float]:
    series = run.series(names.LOOP, quantity)
    return [value for value, seen in zip(series["mean"].tolist(), series.seen, strict=True) if seen]


def backward(model) -> None:
    model(torch.ones(4, 3)).square().sum().backward()


def test_clipping_notes_the_norm_before_it_and_the_limit(loop):
    norms = []

    def body(model, optimizer, step):
        optimizer.zero_grad()
        backward(model)
        norms.append(clip_grad_norm_(model.parameters(), 0.5).item())
        optimizer.step()

    with loop(body) as run:
        assert means(run, names.GRAD_NORM_UNCLIPPED) == pytest.approx(norms, rel=1e-6)
        assert means(run, names.CLIP_LIMIT) == [0.5] * 3
        assert means(run, names.CLIPS) == [1.0] * 3
        assert max(means(run, names.GRAD_NORM)) <= 0.5 * (1 + 1e-5)


def test_clipping_by_value_is_noticed_too(loop):
    def body(model, optimizer, step):
        optimizer.zero_grad()
        backward(model)
        clip_grad_value_(model.parameters(), 0.25)
        optimizer.step()

    with loop(body) as run:
        assert means(run, names.CLIP_LIMIT) == [0.25] * 3


def test_gradients_that_are_wiped_before_a_step_are_counted(loop):
    def body(model, optimizer, step):
        backward(model)
        if step == 1:
            optimizer.zero_grad()
            backward(model)
        optimizer.step()
        optimizer.zero_grad()

    with loop(body) as run:
        assert sum(means(run, names.WIPED)) == 1
        assert sum(means(run, names.BACKWARDS)) == 4


def test_a_pass_on_old_gradients_that_are_cleared_then_counts_as_none(loop):
    def body(model, optimizer, step):
        backward(model)  # an adversary looks for its input, on top of what the last step has used
        optimizer.zero_grad()
        backward(model)
        optimizer.step()

    with loop(body, steps=6) as run:
        old = means(run, names.OLD_GRADIENTS)
        assert old
        assert not any(old)


def test_gradients_that_nobody_clears_are_counted_as_old(loop):
    def body(model, optimizer, step):
        backward(model)
        optimizer.step()

    with loop(body, steps=4) as run:
        assert means(run, names.OLD_GRADIENTS) == [0, 1, 1, 1]


def test_a_scheduler_inside_another_is_one(loop):
    several = [lr_scheduler.ConstantLR(loop.optimizer), lr_scheduler.StepLR(loop.optimizer, 1)]
    chained = lr_scheduler.ChainedScheduler(several)

    def body(model, optimizer, step):
        optimizer.zero_grad()
        backward(model)
        optimizer.step()
        chained.step()

    with loop(body) as run:
        assert means(run, names.SCHEDULES) == [0, 1, 1]  # one after a step counts with the next
        orders = [event.data["calls"] for event in run.events if event.kind == names.ORDER]
        assert orders[0].count("schedule") == 1


def test_the_factor_of_a_loss_scaler_is_taken_out(loop):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    norms = []

    def body(model, optimizer, step):
        optimizer.zero_grad()
        scaler.scale(model(torch.ones(4, 3)).square().sum()).backward()
        norms.append(math.sqrt(sum((p.grad / 1024).square().sum() for p in model.parameters())))
        scaler.step(optimizer)
        scaler.update()

    with loop(body) as run:
        assert means(run, names.LOSS_SCALE) == [1024.0] * 3
        assert means(run, names.GRAD_NORM) == pytest.approx(norms, rel=1e-5)


def test_a_step_that_a_scaler_leaves_out_is_a_step(loop):
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)

    def body(model, optimizer, step):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).square().sum()
        scaler.scale(loss * (math.inf if step == 1 else 1.0)).backward()
        scaler.step(optimizer)
        scaler.update()

    with loop(body) as run:
        assert means(run, names.SKIPPED_STEPS) == [0, 1, 0]
        assert means(run, names.OPTIMIZER_STEPS) == [1, 0, 1]
        assert run.info["totals"]["steps"] == 3


def test_every_scheduler_with_a_step_of_its_own_is_wrapped_once():
    found = _schedulers(lr_scheduler.LRScheduler)
    assert len(found) == len(set(found))
    assert {lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau} <= set(found)
    assert all("step" in vars(scheduler) for scheduler in found)
