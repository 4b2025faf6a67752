"""Ctrl-C at a random moment of a training loop that catches it and goes on.

The interrupt is raised where Python raises one: as a function begins, or as a call of C returns,
anywhere, nethook's own frames and torch's included; in every fourth try by the signal of a timer.
What was recorded is held against weights that are compared before and after each `step()`.
"""

from __future__ import annotations

import inspect
import random
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.hooks.wrapped import wrapped_functions
from nethook.watching import budget

TITLE = "interrupts"
TRIES = 500
SHORT = 15

INTERRUPTS = 3
OURS = str(Path(nethook.__file__).parent)
MINE = __file__
BESIDE = (str(Path(torch.__file__).parent), str(Path(random.__file__).parent))


class Interrupts:
    """Raises `KeyboardInterrupt` after so many events of the interpreter, while it is armed."""

    def __init__(self, waits: list[int], by_signal: bool) -> None:
        self.waits = waits
        self.by_signal = by_signal
        self.armed = False
        self.raised = 0
        self.dropped = 0  # by Python, which has nobody to tell
        self.ours = False  # whether the last one came inside nethook
        self._left = 0

    def next(self) -> None:
        """Waits for the next moment."""
        if not self.waits:
            return
        self._left = self.waits.pop()
        sys.unraisablehook = self._on_dropped
        if self.by_signal:
            signal.signal(signal.SIGALRM, self._on_signal)
            signal.setitimer(signal.ITIMER_REAL, self._left * 2e-6)
        else:
            sys.setprofile(self._on_event)

    def _on_dropped(self, dropped: Any) -> None:
        if dropped.exc_type is KeyboardInterrupt:
            self.dropped += 1
        else:
            sys.__unraisablehook__(dropped)

    def stop(self) -> None:
        sys.setprofile(None)
        sys.unraisablehook = sys.__unraisablehook__
        if self.by_signal:
            # Ignored first: a handler that is called in between sets the timer anew, and the
            # signal would end the process.
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _on_event(self, frame: FrameType, event: str, _: Any) -> None:
        if not self.armed or event not in ("call", "c_return") or _is_destructor(frame):
            return
        if event == "call" and frame.f_code.co_flags & inspect.CO_GENERATOR:
            return  # maybe one that is thrown away, which calls nothing
        self._left -= 1
        if self._left <= 0 and not (frame.f_code.co_filename == MINE and event == "call"):
            self._raise(frame)

    def _on_signal(self, _: int, frame: FrameType | None) -> None:
        if not self.armed or frame is None or _is_destructor(frame):
            signal.setitimer(signal.ITIMER_REAL, 5e-5)
        else:
            self._raise(frame)

    def _raise(self, frame: FrameType) -> None:
        sys.setprofile(None)
        self.armed = False
        self.raised += 1
        self.ours = _is_ours(frame)
        raise KeyboardInterrupt


def _is_destructor(frame: FrameType | None) -> bool:
    """Whether an exception would only be printed here: Python has nobody to tell."""
    while frame is not None:
        if frame.f_code.co_name in ("__del__", "<lambda>", "_sink_is_gone", "_remove", "remove"):
            return True
        frame = frame.f_back
    return False


def _is_ours(frame: FrameType | None) -> bool:
    """Whether nethook was at work, and not a function of torch that a wrapper of ours called."""
    while frame is not None and frame.f_code.co_filename.startswith(BESIDE):
        frame = frame.f_back
    if frame is None or not frame.f_code.co_filename.startswith(OURS):
        return False
    # These two call what the script or torch has called: there torch may be half-way by itself.
    passes_on = (("loop.py", "__call__"), ("op_mode.py", "__torch_function__"))
    return (Path(frame.f_code.co_filename).name, frame.f_code.co_name) not in passes_on


class Script:
    """A training script: what it trains, and one round of its loop."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.models: Any = None
        self.optimizers: list[torch.optim.Optimizer] = []
        self.interrupts: Interrupts | None = None
        # By optimizer: whether the weights had changed after a step, and whether it had raised.
        self.steps: list[tuple[int, bool, bool]] = []

    def step(self, which: int, *args: Any) -> None:
        """One step of an optimizer, whose weights are compared before and after."""
        interrupts, optimizer = self.interrupts, self.optimizers[which]
        assert interrupts is not None
        interrupts.armed = False
        held = [each for group in optimizer.param_groups for each in group["params"]]
        before = [each.detach().clone() for each in held]
        raised = True
        try:
            interrupts.armed = True
            self.take(optimizer, *args)
            raised = False
        finally:
            interrupts.armed = False
            moved = any(not torch.equal(a, b) for a, b in zip(before, held, strict=True))
            self.steps.append((which, moved, raised))
        interrupts.armed = True

    def take(self, optimizer: torch.optim.Optimizer, *args: Any) -> None:
        optimizer.step(*args)

    def round(self, number: int) -> None:
        raise NotImplementedError

    def recover(self) -> None:
        """After an interrupt: what a careful script does."""
        for each in self.optimizers:
            each.zero_grad()


class Cnn(Script):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.models = nn.Sequential(
            nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(),
            nn.Dropout(0.1), nn.Linear(3 * 36, 5),
        )  # fmt: skip
        kind = [torch.optim.SGD, torch.optim.AdamW][seed % 2]
        self.optimizers = [kind(self.models.parameters(), lr=0.01, fused=seed % 3 == 0)]

    def round(self, number: int) -> None:
        x, y = torch.randn(4, 1, 6, 6), torch.randint(5, (4,))
        self.optimizers[0].zero_grad()
        F.cross_entropy(self.models(x), y).backward()
        self.step(0)
        if number % 8 == 7:
            self.models.eval()
            with torch.no_grad():
                F.cross_entropy(self.models(x), y)
            self.models.train()

    def recover(self) -> None:
        super().recover()
        self.models.train()


class Mlp(Script):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.models = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        self.optimizers = [torch.optim.Adam(self.models.parameters(), 0.01)]

    def loss(self) -> torch.Tensor:
        return F.cross_entropy(self.models(torch.randn(4, 6)), torch.randint(3, (4,)))


class Accumulation(Mlp):
    def round(self, number: int) -> None:
        for _ in range(2):
            (self.loss() / 2).backward()
        nn.utils.clip_grad_norm_(self.models.parameters(), 1.0)
        self.step(0)
        self.optimizers[0].zero_grad()


class Closure(Mlp):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.optimizers = [torch.optim.LBFGS(self.models.parameters(), 0.01, 2, history_size=2)]

    def round(self, number: int) -> None:
        state = torch.get_rng_state()
        self.optimizers[0].state.clear()  # what it knows of other batches may keep it from moving

        def closure() -> torch.Tensor:
            torch.set_rng_state(state)
            self.optimizers[0].zero_grad()
            loss = self.loss()
            loss.backward()
            return loss

        self.step(0, closure)


class Scaler(Mlp):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizers[0], 0.999)

    def take(self, optimizer: torch.optim.Optimizer, *args: Any) -> None:
        self.scaler.step(optimizer)

    def round(self, number: int) -> None:
        self.optimizers[0].zero_grad()
        self.scaler.scale(self.loss()).backward()
        if number % 2:
            self.scaler.unscale_(self.optimizers[0])
        self.step(0)
        self.scaler.update()
        self.schedule.step()

    def recover(self) -> None:
        super().recover()
        self.scaler = torch.amp.GradScaler("cpu", init_scale=8.0)


class Gan(Script):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        maker = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 4))
        critic = nn.Sequential(nn.Linear(4, 6), nn.LeakyReLU(), nn.Linear(6, 1))
        self.models = {"G": maker, "D": critic}
        self.optimizers = [torch.optim.Adam(each.parameters(), 0.01) for each in (critic, maker)]

    def round(self, number: int) -> None:
        maker, critic = self.models["G"], self.models["D"]
        self.optimizers[0].zero_grad()
        with torch.no_grad():
            fake = maker(torch.randn(4, 2))
        loss = F.softplus(critic(fake)).mean() + F.softplus(-critic(torch.randn(4, 4))).mean()
        loss.backward()
        self.step(0)
        self.optimizers[1].zero_grad()
        F.softplus(-critic(maker(torch.randn(4, 2)))).mean().backward()
        self.step(1)


SCRIPTS: tuple[Callable[[int], Script], ...] = (Cnn, Gan, Accumulation, Closure, Scaler)


def _train(script: Script, rounds: int, start: int) -> None:
    interrupts = script.interrupts
    assert interrupts is not None
    caught = 0
    torch.set_grad_enabled(True)  # whatever a try before this one has left
    for number in range(rounds):
        if number == start:
            interrupts.next()
        try:
            interrupts.armed = True
            script.round(number)
            interrupts.armed = False
        except KeyboardInterrupt:
            interrupts.armed = False
            caught += 1
            if interrupts.ours:
                assert torch.is_grad_enabled(), "nethook left gradients off"
                assert not torch._C._is_torch_function_all_disabled()
            # Torch's own context managers are not safe from interrupts either.
            torch.set_grad_enabled(True)
            script.recover()
            interrupts.next()
    # Python itself drops what is raised in a destructor or in a callback of a weak reference.
    assert caught + interrupts.dropped == interrupts.raised, "an interrupt did not reach the script"


def attempt(seed: int, folder: Path) -> None:
    choice = random.Random(seed)
    script = SCRIPTS[seed % len(SCRIPTS)](seed)
    share = (None, 0.03, 0.001)[seed // len(SCRIPTS) % 3]
    quick = share == 0.001
    rounds = 150 if quick else 10
    start = choice.randrange(64, rounds - 4) if quick else choice.randrange(rounds - 2)
    # A round has some hundreds to thousands of events: so they come in the same one, or later.
    waits = [int(10 ** choice.uniform(0.5, 2.7 if quick else 3.7)) for _ in range(INTERRUPTS)]
    interrupts = script.interrupts = Interrupts(waits, by_signal=seed % 4 == 3)
    # A budget that is overdrawn from the start: nearly all steps go the short way.
    thin = patch.multiple(budget, ALLOWANCE=-1e3, WHOLE=-1e3) if quick else nullcontext()
    path = folder / "run.db"
    try:
        with thin, nethook.watch(script.models, script.optimizers, to=path, budget=share) as watch:
            try:
                _train(script, rounds, start)
            finally:
                interrupts.armed = False
                interrupts.stop()
            session = watch._session
            assert session.journal.guard.alive
            assert session.journal.guard.failures == 0, session.journal.guard._failed
            script.round(rounds)  # after all of it, an undisturbed one
            _check(script, watch.step, session.clock.optimizer_steps)
    finally:
        interrupts.stop()
    assert not list(wrapped_functions()), "a wrapper was left behind"
    for model in script.models.values() if isinstance(script.models, dict) else [script.models]:
        assert not nethook.audit(model)
    _check_file(script, path)


def _check(script: Script, steps: int, optimizer_steps: int) -> None:
    assert all(moved or raised for _, moved, raised in script.steps)  # so does the script count
    moved = [which for which, moved, _ in script.steps if moved]
    assert optimizer_steps == len(moved), (
        f"{optimizer_steps} steps, weights moved {len(moved)} times"
    )
    if len(script.optimizers) == 1:
        assert steps == len(moved)
    else:  # a pair is one step, if it was whole
        assert max(moved.count(0), moved.count(1)) <= steps <= len(moved)


def _check_file(script: Script, path: Path) -> None:
    with nethook.open_run(path) as run:
        total = run.info["totals"]["steps"]
        kept = run.series("@loop", "forwards")
        assert int(kept.steps.sum()) == total, (kept.steps.tolist(), total)
        turns = run.series("@loop", "optimizer_steps")
        recorded = round((turns["mean"] * turns["count"]).sum())
        moved = sum(each[1] for each in script.steps)
        assert recorded == moved, (recorded, moved)
        events = [event for event in run.events if event.kind == "interrupted"]
        told = [event for event in events if event.data["call"] == "step"]
        assert not [event for event in run.events if event.kind == "watch-failed"]
    # Those that were interrupted before nethook knew that they had begun are not told.
    assert len(told) <= sum(raised for _, _, raised in script.steps)
    halfway = sum(moved and raised for _, moved, raised in script.steps)
    assert sum(event.data["counts"] is False for event in told) <= len(script.steps) - halfway
