"""A loop that catches an exception and goes on is recorded to its end.

What is injected where, and what the run has of it, is a table written by hand. Random moments are
in `tests/faults/interrupts.py`.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.hooks.wrapped import wrapped_functions
from nethook.watching import budget, schedule
from nethook.watching.measuring.parameters import ParameterSet
from nethook.watching.session import Session
from tests.watching.loops import batches, mlp, unwatched

ROUNDS = 8
AT = 3  # the round in which it happens
QUICK = (72, 66)  # the same where steps go the short way: from step 64 on

# Where an exception is raised -> how many of the rounds are steps, and the events: the call that
# was interrupted, and whether the step counts (None: that was not the question).
TABLE = {
    "the data": (-1, []),  # between the calls: nothing of the loop was cut short
    "zero_grad": (-1, [("zero_grad", None)]),
    "forward": (-1, [("forward", None)]),
    "forward hook": (-1, [("forward", None)]),
    "loss": (-1, []),
    "backward": (-1, [("backward", None)]),
    "backward hook": (-1, [("backward", None)]),
    "unscale": (-1, [("unscale", None)]),
    "clip": (-1, [("clip", None)]),
    "before the update": (-1, [("step", False)]),
    "amid the update": (0, [("step", True)]),
    "after the update": (0, [("step", True)]),
    "in the closure": (-1, [("forward", None), ("step", False)]),
    "scaler, before the update": (-1, [("step", False)]),
    "scaler, after the update": (0, [("step", True)]),
    "scheduler": (0, [("schedule", None)]),
}


class Bomb:
    """Raises once, when it is armed and touched."""

    def __init__(self, place, error):
        self.place = place
        self.error = error
        self.armed = False

    def __call__(self, place):
        if self.armed and place == self.place:
            self.armed = False
            raise self.error("injected")


class Fused(torch.optim.SGD):
    """An optimizer that writes its parameters one by one, by way of `.data`."""

    bomb = None

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for each in group["params"]:
                each.data.add_(each.grad, alpha=-group["lr"])
                self.bomb("amid the update")
        return loss


class Groups(list):
    """The groups of an optimizer, which may raise when they are gone through."""

    bomb = None

    def __iter__(self):
        if self.bomb is not None:
            self.bomb("zero_grad")
        return super().__iter__()


class Layer(nn.Module):
    def __init__(self, bomb):
        super().__init__()
        self.bomb = bomb

    def forward(self, x):
        self.bomb("forward")
        self.bomb("in the closure")
        return _Pass.apply(x, self.bomb)


class _Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bomb):
        ctx.bomb = bomb
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        ctx.bomb("backward")
        return grad, None


def loop(place, error, start, monkeypatch, rounds=ROUNDS, at=AT):
    """A loop with all calls, which catches what was injected. The model, and how often it moved."""
    torch.manual_seed(0)
    bomb = Bomb(place, error)
    model = nn.Sequential(nn.Linear(10, 16), Layer(bomb), nn.Linear(16, 5))
    model[0].register_forward_hook(lambda *_: bomb("forward hook"))
    model[2].register_full_backward_hook(lambda *_: bomb("backward hook"))
    optimizer = Fused(model.parameters(), 0.05)
    optimizer.bomb = bomb
    before = "scaler, before the update" if place.startswith("scaler") else "before the update"
    after = "scaler, after the update" if place.startswith("scaler") else "after the update"
    optimizer.register_step_pre_hook(lambda *_: bomb(before))
    optimizer.register_step_post_hook(lambda *_: bomb(after))
    optimizer.param_groups = groups = Groups(optimizer.param_groups)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: bomb("scheduler") or 1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaled = place.startswith("scaler") or place == "unscale"
    shrink, unscale = torch._foreach_mul_, torch._amp_foreach_non_finite_check_and_unscale_
    monkeypatch.setattr(torch, "_foreach_mul_", lambda *a: bomb("clip") or shrink(*a))
    monkeypatch.setattr(
        torch, "_amp_foreach_non_finite_check_and_unscale_",
        lambda *a: bomb("unscale") or unscale(*a),
    )  # fmt: skip
    moved = 0
    with start(model, optimizer):
        for number, (x, y) in enumerate(batches(rounds)):
            bomb.armed = number == at
            weights = [each.detach().clone() for each in model.parameters()]
            try:
                bomb("the data")
                groups.bomb = bomb
                optimizer.zero_grad()
                groups.bomb = None
                if place == "in the closure":

                    def closure(x=x, y=y):
                        loss = F.cross_entropy(model(x), y)
                        loss.backward()
                        return loss

                    optimizer.step(closure)
                    continue
                output = model(x)
                bomb("loss")
                loss = F.cross_entropy(output, y)
                if scaled:
                    scaler.scale(loss).backward()
                    scaler.unscale_(optimizer)
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    loss.backward()
                    if place == "clip":
                        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
                    optimizer.step()
                schedule.step()
            except error:
                groups.bomb = None
                optimizer.zero_grad()
                scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
            finally:
                now = model.parameters()
                moved += any(not torch.equal(a, b) for a, b in zip(weights, now, strict=True))
    return model, moved


@contextmanager
def thinned(monkeypatch):
    """A budget that is overdrawn from the start: nearly nothing is measured."""
    with monkeypatch.context() as patch:
        patch.setattr(budget, "ALLOWANCE", -1e3)
        patch.setattr(budget, "WHOLE", -1e3)
        patch.setattr(schedule, "LONGEST", 1e3)
        yield


@pytest.mark.parametrize(
    ("error", "quick"),
    [(RuntimeError, False), (KeyboardInterrupt, False), (KeyboardInterrupt, True)],
)
@pytest.mark.parametrize("place", TABLE)
def test_what_an_exception_leaves(place, error, quick, tmp_path, monkeypatch):
    missing, events = TABLE[place]
    rounds, at = QUICK if quick else (ROUNDS, AT)
    path = tmp_path / "run.db"

    def start(model, optimizer):
        return nethook.watch(model, optimizer, to=path, budget=0.001 if quick else None)

    with thinned(monkeypatch) if quick else monkeypatch.context():
        model, moved = loop(place, error, start, monkeypatch, rounds, at)
    assert moved == rounds + missing
    with nethook.open_run(path) as run:
        assert run.info["totals"]["steps"] == moved
        assert run.series("@loop", "forwards").steps.sum() == moved
        told = [each for each in run.events if each.kind == "interrupted"]
        assert [(each.data["call"], each.data["counts"]) for each in told] == events
        assert {each.step for each in told} <= {at}
        assert {each.data["error"] for each in told} <= {error.__name__}
        assert not [each for each in run.events if each.kind == "watch-failed"]
    if not quick:
        alone, _ = loop(place, error, unwatched, monkeypatch, rounds, at)
        assert all(map(torch.equal, model.state_dict().values(), alone.state_dict().values()))


def train(watch, model, optimizer, rounds, told=lambda number: None, error=KeyboardInterrupt):
    """Rounds of a plain loop that catches what comes, and how often something came."""
    caught = 0
    for number, (x, y) in enumerate(batches(rounds)):
        told(number)
        try:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        except error:
            caught += 1
    return caught


def once(monkeypatch, holder, name, act):
    """The next call of a method acts first."""
    original = getattr(holder, name)

    def first(*args, **kwargs):
        monkeypatch.setattr(holder, name, original)
        act()
        return original(*args, **kwargs)

    monkeypatch.setattr(holder, name, first)


def interrupt():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("holder", "method", "steps"),
    [
        (Session, "call_begins", 7),
        (Session, "call_ends", 7),
        (Session, "backward_begins", 7),
        (ParameterSet, "weights", 7),
        (ParameterSet, "gradients", 7),
        (ParameterSet, "updates", 8),  # the weights have changed by then
        (Session, "end_step", 8),
        (Session, "_next_step", 8),
    ],
)
def test_an_interrupt_inside_nethook_reaches_the_script_and_ends_nothing(
    holder, method, steps, tmp_path, monkeypatch
):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None) as watch:

        def told(number):
            if number == 3:
                once(monkeypatch, holder, method, interrupt)

        assert train(watch, model, optimizer, 8, told) == 1
        assert torch.is_grad_enabled()
        assert not torch._C._is_torch_function_all_disabled()
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == steps
        assert not [each for each in run.events if each.kind == "watch-failed"]


def test_what_the_handler_of_a_signal_raises_inside_nethook_is_the_scripts(tmp_path, monkeypatch):
    class TooLongError(Exception):
        pass

    def handler(*_):
        raise TooLongError

    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None) as watch:

            def told(number):
                if number == 3:
                    ring = lambda: signal.raise_signal(signal.SIGALRM)  # noqa: E731
                    once(monkeypatch, ParameterSet, "gradients", ring)

            assert train(watch, model, optimizer, 8, told, TooLongError) == 1
    finally:
        signal.signal(signal.SIGALRM, before)
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == 7
        assert not [each for each in run.events if each.kind == "watch-failed"]


def test_the_end_of_a_run_that_is_interrupted_leaves_nothing_behind(tmp_path, monkeypatch):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    watch = nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None)
    train(watch, model, optimizer, 4)
    once(monkeypatch, Session, "finish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        watch.close()
    assert not nethook.audit(model)
    assert not list(wrapped_functions())
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.series("@loop", "forwards").steps.sum() >= 3


def test_the_exception_that_ends_the_block_is_named(tmp_path):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    optimizer.register_step_post_hook(lambda *_: interrupt())
    path = tmp_path / "run.db"
    with pytest.raises(KeyboardInterrupt), nethook.watch(model, optimizer, to=path):
        F.cross_entropy(model(torch.randn(4, 10)), torch.randint(5, (4,))).backward()
        optimizer.step()
    with nethook.open_run(path) as run:
        [event] = [each for each in run.events if each.kind == "interrupted"]
        assert run.info["totals"]["steps"] == 1
    assert event.message == (
        "step 0 was interrupted in optimizer.step: KeyboardInterrupt; its weights had changed, so "
        "it counts"
    )


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_a_step_that_has_changed_weights_counts_also_if_they_do_not_show_it(kind, fused, tmp_path):
    """A fused optimizer leaves the versions of its parameters as they were."""
    model = mlp()
    optimizer = kind(model.parameters(), 0.05, fused=fused)
    rounds = iter([0, 0, 1, 0, 1, 0, 0, 0])
    optimizer.register_step_post_hook(lambda *_: next(rounds) and interrupt())
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=0.03) as watch:
        assert train(watch, model, optimizer, 8) == 2
        assert watch.step == 8


def test_one_that_is_part_of_another_may_fail_inside_it(tmp_path):
    class Outer(torch.optim.SGD):
        def step(self, closure=None):
            try:
                self.inner.step()
            except ValueError:
                self.failed += 1
            super().step()

    model = mlp()
    [first, *rest] = model.parameters()
    outer = Outer(rest, 0.05)
    outer.inner, outer.failed = torch.optim.SGD([first], 0.05), 0

    def fail(*_):
        raise ValueError

    outer.inner.register_step_pre_hook(fail)
    with nethook.watch(model, outer, to=tmp_path / "run.db", budget=None) as watch:
        train(watch, model, outer, 6)
        assert watch.step == outer.failed == 6
    with nethook.open_run(tmp_path / "run.db") as run:
        assert not [each for each in run.events if each.kind == "interrupted"]


def test_a_pair_that_fails_once_is_a_pair_again(tmp_path):
    maker, critic = nn.Linear(3, 4), nn.Linear(4, 1)
    optimizers = [torch.optim.SGD(each.parameters(), 0.05) for each in (critic, maker)]
    path = tmp_path / "run.db"
    with nethook.watch({"G": maker, "D": critic}, optimizers, to=path, budget=None):
        for number in range(8):
            try:
                for optimizer in optimizers:
                    optimizer.zero_grad()
                    loss = critic(maker(torch.randn(4, 3))).square().mean()
                    if number == 3 and optimizer is optimizers[1]:
                        raise RuntimeError("a loss that nobody sees")
                    loss.backward()
                    optimizer.step()
            except RuntimeError:
                continue
    with nethook.open_run(path) as run:
        turns = run.series("@loop", "optimizer_steps")
        expected = [2, 2, 2, 1, 2, 2, 2, 2]
        # Where the writer is behind, windows merge: each has the mean of its steps.
        windows = zip(turns.first_step, turns.last_step, turns["mean"], strict=True)
        assert all(mean == np.mean(expected[first : last + 1]) for first, last, mean in windows)
        assert turns.steps.sum() == len(expected)


def test_a_call_inside_another_that_is_interrupted_leaves_the_outer_one(tmp_path):
    """Two watched models, one inside the other: the outer one catches what the inner one raises."""
    fails = iter([False, True, False, False])

    class Inner(nn.Linear):
        def forward(self, x):
            if next(fails):
                raise KeyboardInterrupt
            return super().forward(x)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner(10, 5)
            self.other = nn.Linear(10, 5)

        def forward(self, x):
            try:
                return self.inner(x)
            except KeyboardInterrupt:
                return self.other(x)

    model = Outer()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    path = tmp_path / "run.db"
    with nethook.watch({"all": model, "in": model.inner}, optimizer, to=path, budget=None) as watch:
        train(watch, model, optimizer, 4)
        assert watch._session.clock.calls.depth <= 1
    with nethook.open_run(path) as run:
        assert run.info["totals"]["steps"] == 4
        forwards = run.series("@loop", "forwards")  # where the writer is behind, windows merge
        assert forwards.steps.sum() == 4
        assert set(forwards["mean"].tolist()) == {1}
