"""A call of a model is kept as it happens, and nothing of that is noticed."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from nethook.examining import keeping
from nethook.examining.experiment import NotReplayableError
from nethook.examining.keeping import KeptCall
from nethook.examining.rehearsal import Rehearsal
from nethook.torch_private import function_modes


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 3))


X, Y = torch.randn(6, 5), torch.tensor([0, 1, 2, 0, 1, 2])


def step(model: nn.Module) -> tuple[KeptCall, torch.Tensor]:
    kept = KeptCall(model, (X,), {})
    output = model(X)
    kept.returned(output)
    assert kept.is_recording
    return kept, F.cross_entropy(output, Y)


def test_a_step_is_run_again(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    kept, loss = step(model)
    material = kept.backward([loss])
    loss.backward()
    optimizer.step()
    assert kept.drop()
    rehearsal = Rehearsal(material)
    rehearsal.check()
    assert rehearsal.replayable, rehearsal.why_not
    assert torch.equal(rehearsal.run().loss, loss.detach())


def test_recording_ends_inside_of_backward(model):
    """`loss.backward()` is a call that is seen: torch puts the mode back when it has returned."""
    kept, loss = step(model)
    held = []
    loss.register_hook(lambda _: held.append((kept.backward([loss]), kept.drop())))
    loss.backward()
    ((material, off),) = held
    assert not off
    assert function_modes() == 1
    assert not kept.is_recording
    torch.ones(2) + 1
    assert kept.drop()
    assert function_modes() == 0
    rehearsal = Rehearsal(material)
    rehearsal.check()
    assert rehearsal.replayable, rehearsal.why_not


class Counting(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("ends", ["before the loss", "after it"])
def test_modes_of_the_script_come_and_go(model, ends):
    def run(keep: bool) -> tuple[list[str], torch.Tensor]:
        torch.manual_seed(1)
        mode = Counting()
        kept = KeptCall(model, (X,), {}) if keep else None
        with mode:
            output = model(X)
            if kept is not None:
                kept.returned(output)
            if ends == "after it":
                loss = F.cross_entropy(output, Y)
        if ends == "before the loss":
            loss = F.cross_entropy(output, Y)
        if kept is not None:
            kept.backward([loss])
            assert kept.drop()
        assert function_modes() == 0
        return mode.names, loss.detach()

    model.eval()
    (plain, loss), (watched, other) = run(False), run(True)
    assert watched == plain
    assert torch.equal(loss, other)


def test_a_default_device_stays_the_lowest(model):
    torch.set_default_device("cpu")
    try:
        kept, loss = step(model)
        torch.set_default_device("cpu")
        kept.backward([loss + torch.zeros(())])
        assert kept.drop()
        assert function_modes() == 1
    finally:
        torch.set_default_device(None)
    assert function_modes() == 0


def test_a_compiler_is_not_made_to_compile_again(model, monkeypatch):
    monkeypatch.setattr(keeping, "compiled_frames", lambda: 1)
    kept = KeptCall(model, (X,), {})
    output = model(X)
    kept.returned(output)
    assert not kept.is_recording
    material = kept.backward([F.cross_entropy(output, Y)])
    assert "torch.compile" in material.no_passage
    rehearsal = Rehearsal(material)
    rehearsal.check()
    assert rehearsal.repeats
    assert not rehearsal.replayable


def test_why_not_is_said(model):
    model.register_forward_hook(lambda *_: None)
    with pytest.raises(NotReplayableError, match="hooks on it"):
        KeptCall(model, (X,), {})


def test_an_input_that_cannot_be_copied(model):
    with pytest.raises(NotReplayableError, match="an input cannot be copied"):
        KeptCall(model, (X, (value for value in X)), {})


def test_an_expanded_input_that_nobody_could_write_out():
    huge = torch.randn(8, 1, 3).expand(8, 2**40, 3)
    with pytest.raises(
        NotReplayableError, match="an input is expanded: written out, it would take"
    ):
        KeptCall(nn.Identity(), (), {"x": [huge]})
    KeptCall(nn.Identity(), (torch.randn(8, 1, 3).expand(8, 5, 3),), {}).drop()


def test_dropped_at_any_time(model):
    kept = KeptCall(model, (X,), {})
    assert kept.drop()
    kept = KeptCall(model, (X,), {})
    kept.returned(model(X))
    assert kept.drop()
    assert function_modes() == 0
