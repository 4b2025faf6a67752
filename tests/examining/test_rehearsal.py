"""One training step that can be run again: the same each time, and nothing else changes."""

from __future__ import annotations

import copy
import random
import secrets
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.addresses.inputs import Inputs
from nethook.examining.experiment import NotReplayableError, OutOfTimeError
from nethook.examining.limits import Deadline
from nethook.examining.rehearsal import Rehearsal, same_bits
from nethook.examining.rehearse import rehearse
from nethook.torch_private import function_modes


class Net(nn.Module):
    """Batch norm, dropout, random numbers of three sources, and a count."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(10, 20)
        self.norm = nn.BatchNorm1d(20)
        self.drop = nn.Dropout()
        self.last = nn.Linear(20, 6)
        self.generator = torch.Generator().manual_seed(5)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        hidden = self.drop(torch.relu(self.norm(self.first(x))))
        hidden = hidden + torch.rand(hidden.shape, generator=self.generator) * random.random()
        return self.last(hidden) * (1 + 0.1 * float(np.random.rand())) / self.calls


@pytest.fixture
def model() -> Net:
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(8, 10)


@pytest.fixture
def y() -> torch.Tensor:
    return torch.randint(0, 6, (8,))


@pytest.fixture
def rehearsal(model, x, y) -> Rehearsal:
    return rehearse(model, Inputs((x,)), lambda output: F.cross_entropy(output, y))


def test_it_gives_the_recorded_loss_every_time(rehearsal):
    assert rehearsal.replayable, rehearsal.why_not
    assert rehearsal.repeats
    for _ in range(3):
        ran = rehearsal.run()
        assert same_bits(ran.loss, rehearsal.recorded.loss)
        assert same_bits(ran.output, rehearsal.recorded.output)
        assert not ran.loss.requires_grad


def test_prediction_and_target_are_those_of_the_loss(rehearsal, y):
    ran = rehearsal.run()
    assert torch.equal(ran.target, y)
    assert torch.equal(ran.prediction, ran.output)
    assert [call.kind for call in ran.calls] == ["cross_entropy"]
    assert not ran.calls[0].inside_model
    assert torch.equal(rehearsal.targets[0].tensor, y)


def test_other_inputs_change_what_they_change(rehearsal, x):
    changed = x.clone()
    changed[0] += 1
    ran = rehearsal.run(Inputs((changed,)), training=False)
    plain = rehearsal.run(training=False)
    moved = (ran.output != plain.output).any(-1)
    assert moved.tolist() == [True] + [False] * 7


def test_evaluation_is_a_mode_of_one_run(rehearsal):
    plain = rehearsal.run()
    evaluated = rehearsal.run(training=False)
    assert not same_bits(plain.output, evaluated.output)
    assert all(module.training for module in rehearsal.model.modules())
    assert same_bits(rehearsal.run().output, plain.output)


def test_a_mode_that_is_an_argument_follows() -> None:
    """Keras calls `model(x, training=True)`, and its layers do not ask for the module's mode."""

    class Told(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor, training: bool | None = None) -> torch.Tensor:
            return self.layer(x - x.mean(0) if training else x)

    model, x, y = Told(), torch.randn(4, 3), torch.randn(4, 3)
    rehearsal = rehearse(
        model, Inputs((x,), {"training": True}), lambda output: F.mse_loss(output, y)
    )
    assert torch.equal(rehearsal.run(training=False).output, model(x))
    assert torch.equal(rehearsal.run().output, model(x, training=True))
    assert rehearsal.inputs.kwargs == {"training": True}


def test_gradients_are_those_of_the_script(model, x, y, rehearsal):
    twin = copy.deepcopy(rehearsal.model)
    rehearsal._material.states()
    expected = torch.autograd.grad(F.cross_entropy(twin(x), y), list(twin.parameters()))
    ran = rehearsal.run(grad=True)
    mine = torch.autograd.grad(ran.loss, list(rehearsal.model.parameters()))
    assert same_bits(list(mine), list(expected))
    assert all(parameter.grad is None for parameter in rehearsal.model.parameters())


def test_nothing_else_changes(model, x, y):
    before = copy.deepcopy(model.state_dict())
    given, states = x.clone(), (torch.get_rng_state(), random.getstate(), np.random.get_state()[1])
    rehearsal = rehearse(model, Inputs((x,)), lambda output: F.cross_entropy(output, y))
    rehearsal.run(grad=True)
    rehearsal.run(training=False, outputs_only=True)
    assert same_bits(dict(before), dict(model.state_dict()))
    assert model.calls == 0
    assert torch.equal(x, given)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert (np.random.get_state()[1] == states[2]).all()
    assert function_modes() == 0
    assert torch.is_grad_enabled()


def test_a_twin_may_be_trained(rehearsal):
    twin = rehearsal.twin()
    losses = []
    for _ in range(5):
        ran = twin.run(grad=True)
        parameters = list(twin.model.parameters())
        with torch.no_grad():
            for parameter, grad in zip(
                parameters, torch.autograd.grad(ran.loss, parameters), strict=True
            ):
                parameter -= 0.5 * grad
        losses.append(float(ran.loss.detach()))
    assert losses[-1] < losses[0]
    assert same_bits(rehearsal.run().loss, rehearsal.recorded.loss)


def test_outputs_alone(rehearsal):
    ran = rehearsal.run(outputs_only=True)
    assert ran.loss is None
    assert same_bits(ran.output, rehearsal.recorded.output)


class OwnLoss(nn.Module):
    """As models of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.head(self.embedding(tokens))
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return {"loss": loss, "logits": logits}


def test_a_loss_inside_the_model(y):
    tokens = torch.randint(0, 11, (4, 7))
    rehearsal = rehearse(
        OwnLoss(), Inputs((), {"tokens": tokens, "labels": tokens}), lambda out: out["loss"] / 2
    )
    assert rehearsal.replayable, rehearsal.why_not
    (call,) = rehearsal.recorded.calls
    assert call.inside_model
    assert torch.equal(call.target, tokens[:, 1:].flatten())
    assert rehearsal.run().prediction.shape == (24, 11)
    assert len(rehearsal.history.tokens) == 2


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_a_passage_that_does_not_replay_leaves_the_outputs(model, x, y):
    scripted = torch.jit.script(_scripted)
    rehearsal = rehearse(model, Inputs((x,)), lambda output: scripted(output) * 1)
    assert not rehearsal.replayable
    assert rehearsal.repeats
    assert "cannot see it" in rehearsal.why_not
    with pytest.raises(NotReplayableError):
        rehearsal.run()
    assert rehearsal.run(outputs_only=True).output.shape == (8, 6)


def _scripted(output: torch.Tensor) -> torch.Tensor:
    return output.pow(2).mean()


def test_chance_that_cannot_be_repeated(x, y):
    class Secret(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(10, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) * (1 + secrets.randbelow(2**24) / 2**24)

    rehearsal = rehearse(Secret(), Inputs((x,)), lambda output: F.cross_entropy(output, y))
    assert not rehearsal.repeats
    assert not rehearsal.replayable
    assert "do not give the same output again" in rehearsal.why_not


def test_a_model_that_fails_on_changed_inputs(rehearsal):
    with pytest.raises(NotReplayableError, match="the model fails on it"):
        rehearsal.run(Inputs((torch.randn(8, 11),)))
    assert rehearsal.run().loss is not None


def test_time_that_is_over(rehearsal):
    rehearsal.deadline = Deadline(0.0)
    with pytest.raises(OutOfTimeError):
        rehearsal.run()


def test_a_fast_path_without_gradient_is_no_difference():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0).eval()
    x, y = torch.randn(4, 5, 8), torch.randn(4, 5, 8)
    rehearsal = rehearse(layer, Inputs((x,)), lambda output: F.mse_loss(output, y))
    assert rehearsal.replayable, rehearsal.why_not
    assert not rehearsal.run().output.requires_grad


def test_bits_are_compared():
    nan = torch.tensor([float("nan"), 0.0])
    assert same_bits(nan, nan.clone())
    assert not same_bits(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert not same_bits(torch.ones(2), torch.ones(3))
    assert not same_bits(torch.ones(2), torch.ones(2, dtype=torch.float64))
    assert same_bits({"a": torch.ones(1, dtype=torch.complex64)}, {"a": torch.ones(1) + 0j})


class WritesBuffer(nn.Module):
    """Backward needs the buffer as the forward has left it."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(10, 6)
        self.register_buffer("scale", torch.ones(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.scale.mul_(2)
        return self.inner(x.mul_(0.5)) * self.scale


def test_gradients_through_what_a_forward_has_written(x, y):
    model = WritesBuffer()
    expected = torch.autograd.grad(
        F.cross_entropy(model.inner(x * 0.5) * 2, y), list(model.parameters())
    )
    rehearsal = rehearse(model, Inputs((x,)), lambda output: F.cross_entropy(output, y))
    assert rehearsal.replayable, rehearsal.why_not
    loss = rehearsal.run(grad=True).loss
    mine = torch.autograd.grad(loss, list(rehearsal.model.parameters()))
    assert same_bits(list(mine), list(expected))
    assert torch.equal(rehearsal.model.scale, torch.ones(6))


def test_functions_that_the_model_calls_are_told() -> None:
    called: list[str] = []

    def seen(function: Any, _args: Any, _kwargs: Any, run: Any) -> Any:
        called.append(getattr(function, "__name__", ""))
        return run()

    rehearsal = rehearse(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), Inputs((torch.randn(4, 3),)),
                         lambda out: out.sum())  # fmt: skip
    rehearsal.run(seen=seen)
    assert "linear" in called
    assert "relu" in called


def test_a_script_that_writes_to_the_output():
    y = torch.randn(6, 3)

    def then(output: torch.Tensor) -> torch.Tensor:
        output.mul_(2)
        output[:, 0] = 0.0
        return F.mse_loss(output, y)

    rehearsal = rehearse(nn.Linear(4, 3), Inputs((torch.randn(6, 4),)), then)
    assert rehearsal.replayable, rehearsal.why_not
    ran = rehearsal.run(grad=True)
    assert torch.equal(ran.output, rehearsal.recorded.output)
    assert torch.equal(ran.prediction[:, 1:], 2 * ran.output[:, 1:])
    (gradient,) = torch.autograd.grad(ran.loss, ran.output)
    assert not gradient[:, 0].any()
    assert gradient[:, 1:].all()
