"""Every term has a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiments.targets.every_term_has_a_gradient import EveryTermHasAGradient
from tests.examining.experiments.steps import Step, step

Then = Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]
WEIGHTS = torch.rand(4)
TEACHER, STORED = torch.randn(12, 4), torch.randn(12, 4)
EARLIER = nn.Linear(3, 4)(torch.randn(12, 3))
OF_CONSTANTS = "a loss of tensors without a gradient"


def of(then: Then) -> Any:
    model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 4))
    y = torch.randint(4, (12,))
    made: Step = step(model, torch.randn(12, 8), then=lambda out: then(model, out, y))
    experiment, rehearsal = EveryTermHasAGradient(), made.rehearsal()
    reason = experiment.applies(rehearsal)
    assert reason is None
    return experiment.run(rehearsal)


def number(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(out, y) + 0.001 * sum(p.abs().sum().item() for p in model.parameters())


def one_number(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    loss = F.cross_entropy(out, y)
    loss += 0.5 * out.std().item()
    return loss


def data(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    loss = F.cross_entropy(out, y)
    for parameter in model.parameters():
        loss = loss + 0.01 * parameter.data.norm()
    return loss


def detached(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(out, y) + out.softmax(1).var(0).sum().detach() * 0.1


def without_grad(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        smooth = (out - out.roll(1, 0)).square().mean()
    return F.cross_entropy(out, y) + smooth


def made_anew(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return 0.5 * (F.cross_entropy(out, y) + torch.tensor(F.mse_loss(out, out.roll(1, 0)).item()))


@pytest.mark.parametrize("then", [number, one_number, data, detached, without_grad, made_anew])
def test_a_term_without_a_gradient(then: Then) -> None:
    result = of(then)
    assert result.outcome == "found"
    assert result.facts["lines"][0].startswith("test_every_term_has_a_gradient.py:")
    assert ("number" in result.facts["how"]) == (then in (number, one_number))


def teacher_of(logits: torch.Tensor) -> torch.Tensor:
    return (logits / 2).log_softmax(1)


def teacher_against_itself(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    soft = 4 * F.kl_div(teacher_of(TEACHER), TEACHER.softmax(1), reduction="batchmean")
    return 0.9 * soft + 0.1 * F.cross_entropy(out, y)


def stored_values(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    error = F.mse_loss(STORED, STORED.roll(1, 0), reduction="none").mean()
    return F.cross_entropy(out, y) + 0.5 * error


@pytest.mark.parametrize("then", [teacher_against_itself, stored_values])
def test_a_loss_of_which_nothing_has_a_gradient(then: Then) -> None:
    result = of(then)
    assert result.outcome == "found"
    assert result.facts["how"] == OF_CONSTANTS


def distilled(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    soft = F.kl_div(teacher_of(out), TEACHER.softmax(1), reduction="batchmean")
    return 0.9 * soft + 0.1 * F.cross_entropy(out, y)


def swapped(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The divergence the other way round: the student is the target."""
    soft = F.kl_div(teacher_of(TEACHER), out.softmax(1), reduction="batchmean")
    return soft + F.cross_entropy(out, y)


def of_another_network(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Its output was computed before this network was called, and its loss is learnt."""
    return F.cross_entropy(out, y) + F.mse_loss(EARLIER, STORED)


def over_time(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The first of the states is given."""
    loss = F.cross_entropy(out, y)
    for state in (STORED, out, out.tanh()):
        loss = loss + F.mse_loss(state, STORED.roll(1, 0))
    return loss


def beside(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The teacher's own loss is printed, and no part of the sum."""
    assert F.cross_entropy(TEACHER, y).item() > 0
    return F.cross_entropy(out, y) + 0.1 * out.square().mean()


def with_its_weights(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A proximal term: weights against those of before."""
    pairs = [(one, torch.zeros_like(one)) for one in model.parameters()]
    return F.cross_entropy(out, y) + sum(F.mse_loss(one, old) for one, old in pairs)


def factor(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A loss of the teacher weighs the student's."""
    return F.cross_entropy(out, y) * F.cross_entropy(TEACHER, y) + out.square().mean()


APART = [distilled, swapped, of_another_network, over_time, beside, with_its_weights, factor]


@pytest.mark.parametrize("then", APART, ids=lambda one: one.__name__)
def test_losses_of_which_something_has_a_gradient(then: Then) -> None:
    assert of(then).outcome in ("fine", "not applicable")


def penalty(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(out, y) + 0.01 * sum(p.abs().sum() for p in model.parameters())


def weighed(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A term is brought to the size of the other."""
    loss, other = F.cross_entropy(out, y), out.square().mean()
    return loss + other * (loss.item() / other.item())


def flooded(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (F.cross_entropy(out, y) - 0.3).abs() + 0.3


def shown(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """What is printed is another number than what is learnt."""
    loss = F.cross_entropy(out, y)
    return loss + ((out.argmax(1) != y).float().mean() - loss).detach()


def printed(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    loss, other = F.cross_entropy(out, y), out.square().mean()
    assert loss.item() + 0.1 * other.item() > 0
    return loss + 0.1 * other


def of_the_data(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The entropy of the targets, as in a divergence."""
    entropy = torch.bincount(y, minlength=4).float().softmax(0).log().mean().item()
    return F.cross_entropy(out, y) - entropy + torch.tensor(0.25)


def with_teacher(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        centre = out.mean(0)
    return F.cross_entropy(out, y) + (out - centre).square().mean()


def weights_of_a_loss(model: nn.Module, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (F.cross_entropy(out, y, reduction="none") * WEIGHTS[y]).mean() + 0


HEALTHY = [penalty, weighed, flooded, shown, printed, of_the_data, with_teacher, weights_of_a_loss]


@pytest.mark.parametrize("then", HEALTHY, ids=lambda one: one.__name__)
def test_terms_that_are_as_they_should_be(then: Then) -> None:
    assert of(then).outcome in ("fine", "not applicable")


def test_a_loss_that_is_no_sum() -> None:
    assert of(lambda model, out, y: F.cross_entropy(out, y)).outcome == "not applicable"
