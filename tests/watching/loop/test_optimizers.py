"""Steps of optimizers: when a step of the loop ends, whatever the loop is like."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook.runs import names
from nethook.watching.loop.optimizers import PATIENCE


class Loop:
    """Two networks with an optimizer each, watched; `step` is the one under way."""

    def __init__(self, folder, *, given: bool = True, watch_second: bool = True) -> None:
        torch.manual_seed(0)
        self.nets = {"a": nn.Linear(3, 2), "b": nn.Linear(3, 2)}
        self.optimizers = [torch.optim.SGD(net.parameters(), 0.1) for net in self.nets.values()]
        models = self.nets if watch_second else {"a": self.nets["a"]}
        self.path = folder / "run.db"
        optimizers = self.optimizers if given else None
        self.watch = nethook.watch(models, optimizers, to=self.path, budget=None)
        self.watch.be_silent()

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        self.watch.close()

    @property
    def step(self) -> int:
        return self.watch.step

    def backward(self, which: str = "a") -> None:
        self.nets[which](torch.ones(1, 3)).sum().backward()


@pytest.mark.parametrize("given", [True, False], ids=["given", "found"])
def test_a_step_ends_when_every_optimizer_has_stepped(given, tmp_path):
    with Loop(tmp_path, given=given) as loop:
        ends = []
        for _ in range(4):
            for which, optimizer in zip("ab", loop.optimizers, strict=True):
                loop.backward(which)
                optimizer.step()
                ends.append(loop.step)
        assert ends == [0, 1, 1, 2, 2, 3, 3, 4]


def test_one_that_steps_more_often_ends_steps_of_its_own(tmp_path):
    with Loop(tmp_path) as loop:
        first, second = loop.optimizers
        for _ in range(3):  # as a critic that is trained three times for each generator
            for _ in range(3):
                loop.backward("a")
                first.step()
            loop.backward("b")
            second.step()
    with nethook.open_run(tmp_path / "run.db") as run:
        steps = run.series(names.LOOP, names.OPTIMIZER_STEPS)
        assert run.info["totals"]["optimizer_steps"] == {"0": 9, "1": 3}
        total = (steps["mean"] * steps["count"]).sum()
        # None is lost, and none counts twice; windows that merge round their means.
        assert total == pytest.approx(12, rel=1e-12)


def test_an_optimizer_that_holds_nothing_of_the_model_is_none_of_it(tmp_path):
    with Loop(tmp_path, given=False, watch_second=False) as loop:
        loop.backward("a")
        loop.optimizers[1].step()
        assert loop.step == 0
        loop.optimizers[0].step()
        assert loop.step == 1


def test_an_optimizer_inside_another_is_one_step(tmp_path):
    class Outer(torch.optim.SGD):
        inner = None

        @torch.no_grad()
        def step(self, closure=None):
            self.inner.step()
            return super().step(closure)

    model = nn.Linear(3, 2)
    outer = Outer(model.parameters(), 0.1)
    outer.inner = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, outer, to=tmp_path / "run.db") as watch:
        watch.be_silent()
        for _ in range(3):
            model(torch.ones(1, 3)).sum().backward()
            outer.step()
        assert watch.step == 3


def test_gradients_of_a_closure_are_those_after_it(tmp_path):
    model = nn.Linear(3, 1, bias=False)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=1)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None) as watch:
        watch.be_silent()
        gradients = []

        def closure():
            optimizer.zero_grad()
            loss = model(torch.tensor([[1.0, 2.0, 3.0]])).square().sum()
            loss.backward()
            gradients.append(model.weight.grad.norm().item())
            return loss

        optimizer.step(closure)
        assert watch.step == 1
    with nethook.open_run(tmp_path / "run.db") as run:
        norm = run.series(names.LOOP, names.GRAD_NORM)["mean"].tolist()
        assert norm == pytest.approx(gradients[:1], rel=1e-6)


def test_without_a_step_backward_passes_are_counted_after_a_while(tmp_path):
    model = nn.Linear(3, 2)
    with nethook.watch(model, to=tmp_path / "run.db") as watch:
        watch.be_silent()
        for _ in range(5):  # by hand: no optimizer holds the parameters
            model(torch.ones(1, 3)).sum().backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(0.1 * parameter.grad)
                    parameter.grad = None
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["clock"] == "backward"
        assert run.info["totals"]["steps"] == 5


def test_accumulation_before_the_first_step_is_waited_for(tmp_path):
    with Loop(tmp_path, given=False, watch_second=False) as loop:
        for _ in range(PATIENCE - 1):
            loop.backward("a")
        assert loop.step == 0
        loop.optimizers[0].step()
        assert loop.step == 1


class Coat(torch.optim.Optimizer):
    """As Accelerate's: an optimizer around another, with the very same groups."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    @property
    def state(self):
        return self.optimizer.state

    def zero_grad(self, set_to_none=True):
        self.optimizer.zero_grad(set_to_none)

    def step(self, closure=None):
        return self.optimizer.step(closure)


def copied(optimizer):
    """As Lightning's: of a class made for it, with the attributes of the other."""
    kind = type("Copied", (Coat, type(optimizer)), {"param_groups": None, "state": None})
    coat = kind.__new__(kind)
    coat.__dict__ |= vars(optimizer) | {"optimizer": optimizer}
    kind.param_groups, kind.state = optimizer.param_groups, optimizer.state
    return coat


@pytest.mark.parametrize("coat_of", [Coat, copied])
@pytest.mark.parametrize("given", ["both", "coat", "inner", "found", "later"])
def test_an_optimizer_in_the_coat_of_another_is_one(given, coat_of, tmp_path):
    model = nn.Linear(3, 2)
    inner = torch.optim.SGD(model.parameters(), 0.1)
    coat = coat_of(inner) if given != "later" else None
    optimizers = {"both": [inner, coat], "coat": coat, "inner": inner}.get(given)
    steps, path = [], tmp_path / "run.db"
    with nethook.watch(model, optimizers, to=path, budget=None) as watch:
        watch.be_silent()
        for number in range(5):
            if number == 2 and coat is None:
                coat = coat_of(inner)
            stepper = inner if coat is None else coat
            for _ in range(2):  # micro-batches
                (model(torch.ones(1, 3)).sum() / 2).backward()
            stepper.step()
            stepper.zero_grad()
            steps.append(watch.step)
    assert steps == [1, 2, 3, 4, 5]
    with nethook.open_run(path) as run:
        assert run.info["totals"]["optimizer_steps"] == {"0": 5}
        assert run.series("@loop", names.BACKWARDS)["mean"].tolist() == [2] * 5
        assert run.loss().divided.tolist() == [2] * 5
