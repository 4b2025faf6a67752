"""The input matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiments.inputs.input_matters import InputMatters, _differs
from tests.examining.experiments.healthy import HEALTHY, mlp
from tests.examining.experiments.ill import ILL
from tests.examining.experiments.steps import Calls, step


def test_an_input_without_effect() -> None:
    for name in ("input_overwritten", "softmax_of_one_class"):
        assert InputMatters().run(ILL[name][1]().rehearsal()).outcome == "found"


def test_an_input_that_matters() -> None:
    for name in ("classifier", "packed_and_sorted", "two_inputs_in_a_dict"):
        assert InputMatters().run(HEALTHY[name]().rehearsal()).outcome == "fine"


def test_samples_that_are_all_the_same() -> None:
    y = torch.randn(8, 3)
    one = step(mlp(4, 3), torch.ones(8, 4), then=lambda out: F.mse_loss(out, y))
    assert "all are the same" in (InputMatters().applies(one.rehearsal()) or "")


@pytest.mark.parametrize(
    ("tensor", "differs"),
    [
        (torch.arange(3.0).reshape(3, 1).expand(3, 2**40), True),
        (torch.ones(3, 1).expand(3, 2**40), False),
        (torch.arange(3.0).expand(2**40, 3), False),
        (torch.arange(6).reshape(2, 3), True),
        (torch.arange(6).reshape(1, 6), False),
        (torch.zeros(0, 4), False),
        (torch.tensor(1.0), False),
    ],
)
def test_samples_are_compared_as_they_lie_in_memory(tensor: torch.Tensor, differs: bool) -> None:
    assert _differs(tensor) is differs


def asked(model: nn.Module, x: torch.Tensor, then: Callable[[Any], torch.Tensor]) -> str:
    result = InputMatters().run(step(model, x, then=then, loader=16).rehearsal())
    assert result.outcome == "question"
    return result.reason


def test_inputs_that_are_meant_to_have_no_effect() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(16, 4), torch.randn(16, 3)

    def draws(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.net(torch.randn(len(x), 4))

    def learnt(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.means.weight.mean(0).expand(len(x), -1)

    generator = Calls(draws, net=mlp(4, 8, 3))
    assert "draws" in asked(generator, x, lambda out: F.mse_loss(out, y))
    density = Calls(learnt, means=nn.Embedding(5, 4))
    assert "loss may take" in asked(density, x, lambda out: F.mse_loss(out, x))
    assert "loss may take" in asked(
        density, x, lambda out: -torch.logsumexp(-((x - out) ** 2).sum(-1), 0)
    )
    fooled = Calls(learnt, means=nn.Embedding(5, 1))
    real = torch.ones(16, 1)
    assert "same for all samples" in asked(
        fooled, x, lambda out: F.binary_cross_entropy_with_logits(out, real)
    )


def test_weights_that_let_nothing_through_yet() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(16, 4), torch.randn(16, 3)
    begins_at_zero, dead = mlp(4, 8, 3), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    with torch.no_grad():
        begins_at_zero[-1].weight.zero_()
        dead[0].bias.fill_(-100.0)
    for model in (begins_at_zero, dead):
        assert "with other weights" in asked(model, x, lambda out: F.mse_loss(out, y))


def test_a_deep_network_that_is_dead_is_not_taken_for_one_that_ignores_its_input() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(16, 8), torch.randn(16, 8)
    layers = [part for _ in range(40) for part in (nn.Linear(8, 8), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(8, 8))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.01)
    assert "with other weights" in asked(model, x, lambda out: F.mse_loss(out, y))


def test_ids_alone_are_an_input() -> None:
    torch.manual_seed(0)
    users, items, y = torch.randint(9, (16,)), torch.randint(9, (16,)), torch.randn(16, 4)

    def product(self: Any, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        return self.user(user) * self.item(item)

    parts = {"user": nn.Embedding(9, 4), "item": nn.Embedding(9, 4)}
    made = step(Calls(product, **parts), users, items, then=lambda out: F.mse_loss(out, y))
    assert InputMatters().run(made.rehearsal()).outcome == "fine"
