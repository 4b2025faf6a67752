"""From an output to its loss: replayed bit for bit, and on other outputs as the script would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiment import NotReplayableError
from nethook.examining.passage import Passage, passage_of
from nethook.examining.recording import Recording
from nethook.hooks.ops.calls import EveryCall
from nethook.restoring.mixed_precision import autocast_now
from nethook.restoring.randomness import random_states_unchanged
from nethook.torch_private import function_modes, next_node_number

CLASSES, STEPS, SAMPLES = 6, 3, 4
Then = Callable[[torch.Tensor], torch.Tensor]


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(5, CLASSES)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(SAMPLES, STEPS, 5)


@pytest.fixture
def y() -> torch.Tensor:
    return torch.randint(0, CLASSES, (SAMPLES, STEPS))


def recorded(
    model: nn.Module, x: torch.Tensor, then: Then
) -> tuple[Passage, torch.Tensor, torch.Tensor]:
    output = model(x)
    recording = Recording(
        output, x, {id(tensor): name for name, tensor in model.named_parameters()}
    )
    calls = EveryCall(recording.seen)
    calls.put_on()
    try:
        loss = then(output)
    finally:
        assert calls.remove()
    passage = passage_of(recording, [loss])
    recording.let_go()
    assert function_modes() == 0
    return passage, output, loss


def replayed(
    passage: Passage, output: torch.Tensor, model: nn.Module | None = None, *, grad: bool = False
) -> torch.Tensor:
    parameters = {} if model is None else dict(model.named_parameters())
    with random_states_unchanged():
        return passage.replay(output, parameters, grad=grad).loss


def flat(y: torch.Tensor) -> Then:
    return lambda output: F.cross_entropy(output.view(-1, CLASSES), y.view(-1))


PASSAGES: dict[str, Callable[[torch.Tensor, torch.Tensor], Then]] = {
    "views": lambda x, y: flat(y),
    "transposed": lambda x, y: lambda o: F.cross_entropy(o.permute(0, 2, 1), y),
    "module": lambda x, y: lambda o: nn.CrossEntropyLoss(label_smoothing=0.1)(o[:, -1], y[:, -1]),
    "by hand": lambda x, y: lambda o: ((o[..., :5] - x) ** 2).mean(),
    "gather": lambda x, y: lambda o: -o.log_softmax(-1).gather(-1, y.unsqueeze(-1)).mean(),
    "indexed": lambda x, y: (
        lambda o: -o.log_softmax(-1)[:, 0][torch.arange(SAMPLES), y[:, 0]].sum()
    ),
    "one hot": lambda x, y: lambda o: F.mse_loss(o.softmax(-1), F.one_hot(y, CLASSES).float()),
    "random": lambda x, y: lambda o: F.cross_entropy(F.dropout(o, 0.5).flatten(0, 1), y.flatten()),
    "noise": lambda x, y: lambda o: F.l1_loss(o + torch.randn_like(o), torch.rand(o.shape)),
    "no grad": lambda x, y: lambda o: F.kl_div(o.log_softmax(-1), _soft(o), reduction="batchmean"),
    "in place": lambda x, y: lambda o: _in_place(o, y),
    "written target": lambda x, y: lambda o: _written(o),
    "a loop": lambda x, y: (
        lambda o: sum((F.cross_entropy(a, b) for a, b in zip(o, y, strict=True)), torch.zeros(()))
    ),
    "scaled": lambda x, y: lambda o: F.cross_entropy(o.flatten(0, 1), y.flatten()) / 4 * 1024.0,
    "autocast": lambda x, y: lambda o: _autocast(o, y),
    "sorted": lambda x, y: lambda o: torch.sort(o, dim=0).values.mul(x.sum()).mean(),
    "einsum": lambda x, y: lambda o: torch.einsum("btc,btd->", o, x),
    "stacked": lambda x, y: lambda o: torch.stack([o[:, t] for t in range(STEPS)]).pow(2).mean(),
    "property": lambda x, y: lambda o: (o[0].T @ o.data[1]).sum(),
}


def _soft(output: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return output.softmax(-1) * 0.9 + 0.1 / CLASSES


def _in_place(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    scores = output * 2
    scores += 1
    scores[:, 0] = 0.0
    scores.clamp_(-1, 1)
    mask = torch.zeros(SAMPLES, STEPS)
    mask[:, 1:] = 1
    losses = F.cross_entropy(scores.flatten(0, 1), y.flatten(), reduction="none")
    return (losses * mask.flatten()).sum() / mask.sum()


def _written(output: torch.Tensor) -> torch.Tensor:
    target = torch.zeros_like(output)
    target[..., 0] = 1
    target.mul_(0.9).add_(torch.rand(target.shape), alpha=0.1)
    return F.binary_cross_entropy_with_logits(output, target)


def _autocast(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = output.flatten(0, 1) @ torch.eye(CLASSES)
        assert mixed.dtype is torch.bfloat16
    return F.cross_entropy(mixed.float(), y.flatten())


@pytest.mark.parametrize("name", PASSAGES)
def test_unchanged_data_gives_the_same_loss(name, model, x, y):
    passage, output, loss = recorded(model, x, PASSAGES[name](x, y))
    assert passage.problem == ""
    for _ in range(2):
        assert torch.equal(replayed(passage, output), loss.detach())
    assert autocast_now() == {}


@pytest.mark.parametrize("name", PASSAGES)
def test_changed_data_gives_what_the_script_would_have(name, model, x, y):
    passage, output, _ = recorded(model, x, PASSAGES[name](x, y))
    other = torch.randn_like(output)
    torch.manual_seed(1)
    passage._states = lambda: None  # the script draws from where it is
    expected = PASSAGES[name](x, y)(other)
    torch.manual_seed(1)
    assert torch.equal(replayed(passage, other), expected)


@pytest.mark.parametrize("name", PASSAGES)
def test_gradients_are_those_of_the_script(name, model, x, y):
    passage, output, loss = recorded(model, x, PASSAGES[name](x, y))
    with random_states_unchanged():
        again = passage.replay(output, grad=True).loss
    for mine, theirs in zip(
        torch.autograd.grad(again, list(model.parameters()), retain_graph=True),
        torch.autograd.grad(loss, list(model.parameters())),
        strict=True,
    ):
        assert torch.equal(mine, theirs)


def test_the_target_is_followed_back_to_where_it_came_from(model, x, y):
    def then(output: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(output.view(-1, CLASSES), y.transpose(0, 1).reshape(-1))

    passage, output, _ = recorded(model, x, then)
    (origin,) = passage.targets
    assert torch.equal(origin.tensor, y)
    assert [op.name for op in origin.ops] == ["transpose", "reshape"]
    assert origin.ops[0].line.startswith("test_passage.py:")
    assert origin.path is None
    (call,) = passage.replay(output).calls
    assert call.kind == "cross_entropy"
    assert torch.equal(call.target, y.T.reshape(-1))
    assert call.options["reduction"] == "mean"


def test_a_target_that_is_the_input_is_known(model, x, y):
    passage, _, _ = recorded(model, x, lambda o: F.mse_loss(o[..., :4], x[..., 1:]))
    assert passage.targets[0].path == ()


def test_a_target_made_of_nothing_has_no_tensor(model, x, y):
    passage, _, _ = recorded(model, x, lambda o: F.mse_loss(o, torch.ones_like(o)))
    assert passage.targets[0].tensor is None
    assert [op.name for op in passage.targets[0].ops] == ["ones_like"]


def test_a_loss_by_hand_is_where_output_and_target_meet(model, x, y):
    target, mask = torch.randn(SAMPLES, STEPS, CLASSES), torch.ones(SAMPLES, STEPS, 1)
    passage, output, _ = recorded(model, x, lambda o: ((o - target) ** 2 * mask).mean())
    (call,) = passage.replay(output).calls
    assert call.kind == "by hand"
    assert torch.equal(call.target, target)
    assert torch.equal(call.prediction, output)


def test_parameters_of_the_model_are_those_of_whoever_replays(model, x, y):
    passage, output, loss = recorded(model, x, lambda o: o.pow(2).mean() + model.weight.abs().sum())
    assert torch.equal(replayed(passage, output, model), loss.detach())
    twin = nn.Linear(5, CLASSES)
    expected = output.pow(2).mean() + twin.weight.abs().sum()
    assert torch.equal(replayed(passage, output, twin), expected.detach())
    with pytest.raises(NotReplayableError, match="weight"):
        passage.replay(output)


def test_what_enters_is_as_it_was(model, x, y):
    target = torch.randn(SAMPLES, STEPS, CLASSES)
    passage, output, loss = recorded(model, x, lambda o: F.mse_loss(o, target))
    target.zero_()
    assert torch.equal(replayed(passage, output), loss.detach())
    again = replayed(passage, output)
    again.zero_()
    assert torch.equal(replayed(passage, output), loss.detach())


def test_generators_of_the_script_are_left_alone(model, x, y):
    generator = torch.Generator().manual_seed(3)
    passage, output, loss = recorded(
        model, x, lambda o: (o * torch.rand(o.shape, generator=generator)).mean()
    )
    state = generator.get_state()
    assert torch.equal(replayed(passage, output), loss.detach())
    assert torch.equal(generator.get_state(), state)


def test_a_number_that_was_read_and_used_is_said(model, x, y):
    def then(output: torch.Tensor) -> torch.Tensor:
        loss = flat(y)(output)
        return loss * loss.item()

    passage, _, _ = recorded(model, x, then)
    assert "uses a number that was read from the output" in passage.numbers_used


def test_a_number_that_was_only_shown_is_not(model, x, y):
    def then(output: torch.Tensor) -> torch.Tensor:
        loss = flat(y)(output)
        f"{loss.item():.3f} {(output.argmax(-1) == y).float().mean().item()}"
        return loss * 2

    passage, _, _ = recorded(model, x, then)
    assert passage.problem == passage.numbers_used == ""


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_what_torch_does_not_show_is_a_problem(model, x, y):
    scripted = torch.jit.script(_scripted)
    passage, output, _ = recorded(model, x, lambda o: scripted(o) * 2)
    assert "computed where nethook cannot see it" in passage.problem
    with pytest.raises(NotReplayableError, match="cannot see it"):
        passage.replay(output)


def _scripted(output: torch.Tensor) -> torch.Tensor:
    return output.pow(2).mean()


def test_a_side_way_out_of_the_model_is_a_problem(x, y):
    class Leaky(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(5, CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.penalty = self.inner(x).pow(2).mean()
            return self.inner(x)

    model = Leaky()
    first = next_node_number()
    output = model(x)
    recording = Recording(output, x, None, first)
    calls = EveryCall(recording.seen)
    calls.put_on()
    loss = flat(y)(output) + model.penalty
    calls.remove()
    assert "cannot see it" in passage_of(recording, [loss]).problem


def test_a_loss_that_ignores_the_output(model, x, y):
    passage, _, _ = recorded(model, x, lambda o: x.mean() * torch.ones((), requires_grad=True))
    assert passage.problem == "the loss does not depend on what the model has returned"


def test_several_numbers_are_no_loss(model, x, y):
    passage, _, _ = recorded(model, x, lambda o: o * 2)
    assert "more than one number" in passage.problem


def test_another_number_of_outputs_is_refused(model, x, y):
    passage, output, _ = recorded(model, x, flat(y))
    with pytest.raises(NotReplayableError, match="returned 2 tensors"):
        passage.replay((output, output))


def test_changed_data_on_which_an_operation_fails(model, x, y):
    passage, output, _ = recorded(model, x, flat(y))
    with pytest.raises(NotReplayableError, match="cross_entropy"):
        passage.replay(output[:2])


def test_nothing_of_the_script_is_held(model, x, y):
    import gc
    import weakref

    made: list[Any] = []

    def then(output: torch.Tensor) -> torch.Tensor:
        middle = output * 3
        made.append(weakref.ref(middle))
        return middle.mean()

    passage, _, loss = recorded(model, x, then)
    del loss
    gc.collect()
    assert made[0]() is None
    assert passage.problem == ""


def test_gradients_that_are_cleared_meanwhile(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x).sum().backward()

    def then(output: torch.Tensor) -> torch.Tensor:
        loss = flat(y)(output)
        optimizer.zero_grad()
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        return loss

    passage, output, loss = recorded(model, x, then)
    assert passage.problem == ""
    assert torch.equal(replayed(passage, output, model), loss.detach())


def test_what_is_drawn_besides_is_drawn_again(model, x, y):
    def then(output: torch.Tensor) -> torch.Tensor:
        torch.rand(3)  # of no use to the loss, but what is drawn next depends on it
        (output.argmax(-1) == y).float().mean()
        return F.cross_entropy(F.dropout(output).flatten(0, 1), y.flatten())

    passage, output, loss = recorded(model, x, then)
    assert torch.equal(replayed(passage, output), loss.detach())


def test_a_view_that_is_written_changes_what_it_shows(model, x, y):
    def then(output: torch.Tensor) -> torch.Tensor:
        target = torch.zeros(SAMPLES, STEPS, CLASSES)
        first = target[:, 0]
        first += 1
        first.mul_(torch.arange(CLASSES))
        return F.mse_loss(output, target)

    passage, output, loss = recorded(model, x, then)
    assert torch.equal(replayed(passage, output), loss.detach())
