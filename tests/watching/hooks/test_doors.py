"""A model that is never called as a whole: the part that is called serves as the model."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.hooks.audit import audit
from nethook.runs import names
from nethook.watching.hooks.doors import Doors
from tests.watching.patient import patient  # noqa: F401 - used by every test

STEPS = 8


class Lit(nn.Module):
    """As a LightningModule: its training step calls parts of it."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        self.head = nn.Linear(2, 2)

    def forward(self, x):
        return self.net(x)

    def one(self, x, y):
        return F.cross_entropy(self.net(x), y)

    def several(self, x, y):
        return F.cross_entropy(self.head(self.net(x)), y)

    def layers(self, x, y):
        for layer in self.net:
            x = layer(x)
        return F.cross_entropy(x, y)

    def whole(self, x, y):
        return F.cross_entropy(self(x), y)

    def raising(self, x, y):
        with pytest.raises(RuntimeError):
            self.net(x[:, :1])
        return self.one(x, y)


def trained(how, to=None, micro=1, **options):
    torch.manual_seed(0)
    model, losses = Lit(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(STEPS, 6, 3)
    y = (x[:, :, 0] > 0).long()

    def loop():
        for step in range(STEPS):
            for _ in range(micro):
                loss = getattr(model, how)(x[step], y[step]) / micro
                loss.backward()
            losses.append(loss.item())
            optimizer.step()
            optimizer.zero_grad()

    if to is None:
        loop()
    else:
        with nethook.watch(model, optimizer, to=to, **options) as watch:
            watch.be_silent()
            loop()
    return model, losses


def test_the_part_that_is_called_serves_as_the_model(tmp_path):
    to = tmp_path / "run.db"
    trained("one", to, budget=None)
    with nethook.open_run(to) as run:
        assert run.info["called_part"] == {"": "net"}
        # The first step shows that nobody calls the model, the second who is called.
        assert run.info["totals"]["forwards"] == STEPS - 2
        inputs = run.series("", names.INPUTS)
        assert inputs["tensors"].tolist() == [0, 0, *[1] * (STEPS - 2)]
        assert [op["site"] for op in run.info["ops"]] == ["net.0", "net.1", "net.2"]
        assert run.series("net.0", names.OUTPUTS)["tensors"].tolist() == [1] * STEPS
        assert list(run.loss_curves()) == run.info["losses"]
        assert len(run.loss_curves()) == 1
        assert len(run.loss().shown) == STEPS


def test_it_is_examined(tmp_path):
    to = tmp_path / "run.db"
    trained("one", to, examine=True)
    with nethook.open_run(to) as run:
        assert run.info["examination"]["not_examined"] == []
        assert run.info["examination"]["steps"] == 1
        assert {one["outcome"] for one in run.info["examined"]} >= {"fine"}


@pytest.mark.parametrize("how", ["several", "layers"])
def test_one_of_several_parts_is_not_the_model(tmp_path, how):
    to = tmp_path / "run.db"
    trained(how, to, budget=None)
    with nethook.open_run(to) as run:
        assert "called_part" not in run.info
        assert run.info["totals"]["forwards"] == 0
        assert run.series("net.0", names.OUTPUTS)["tensors"].tolist() == [1] * STEPS


def test_a_model_that_is_called_as_a_whole_has_no_such_part(tmp_path):
    to = tmp_path / "run.db"
    trained("whole", to, budget=None)
    with nethook.open_run(to) as run:
        assert "called_part" not in run.info
        assert run.info["totals"]["forwards"] == STEPS


def test_each_micro_batch_is_a_call(tmp_path):
    to = tmp_path / "run.db"
    trained("one", to, micro=2, budget=None)
    with nethook.open_run(to) as run:
        assert run.info["called_part"] == {"": "net"}
        assert run.info["totals"]["forwards"] == 2 * (STEPS - 2)


def test_a_call_that_raises_is_not_taken_for_one_without_end(tmp_path):
    to = tmp_path / "run.db"
    trained("raising", to, budget=None)
    with nethook.open_run(to) as run:  # two calls per backward pass: not the model for sure
        assert "called_part" not in run.info


@pytest.mark.parametrize("how", ["one", "several", "layers", "raising"])
def test_training_is_the_same_and_nothing_is_left(tmp_path, how):
    plain, losses = trained(how)
    watched, others = trained(how, tmp_path / "run.db")
    assert others == losses
    for mine, other in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(mine, other)
    assert not list(audit(watched))


def test_a_batch_with_nan_is_replayed_through_the_part(tmp_path):
    torch.manual_seed(0)
    model, to = Lit(), tmp_path / "run.db"
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=to) as watch:
        watch.be_silent()
        for step in range(4):
            if step == 3:
                with torch.no_grad():
                    model.net[2].weight.fill_(3e38)  # what it returns overflows
            model.one(torch.ones(2, 3), torch.zeros(2, dtype=torch.long)).backward()
            optimizer.step()
            optimizer.zero_grad()
    with nethook.open_run(to) as run:
        (event,) = [event for event in run.events if event.kind == names.NON_FINITE]
    assert event.address == "net.2"
    again, of_part = (nethook.replay(to, model) for model in (Lit(), Lit().net))
    assert again.reproduced
    assert (again.operation, again.case) == (of_part.operation, of_part.case)


def test_nothing_is_held_when_nobody_looks_any_more():
    """The watch holds this recorder, and a run that follows would find the model of the last."""
    model = nn.Linear(3, 2)
    found = partial(print, model)
    doors = Doors(SimpleNamespace(), SimpleNamespace(), {"": [model]}, found)
    gone = weakref.ref(model)
    doors.turn_off()
    del model, found
    gc.collect()
    assert gone() is None
    assert doors.off
