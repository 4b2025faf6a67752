"""A softmax has a choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiments.network.softmax_has_a_choice import SoftmaxHasAChoice
from tests.examining.experiments.steps import Calls, step

Forward = Callable[[Any, torch.Tensor], torch.Tensor]


def of(forward: Forward) -> Any:
    x, y = torch.randn(12, 6, 8), torch.randint(4, (12,))
    model = Calls(
        forward, score=nn.Linear(8, 1), scores=nn.Linear(8, 5), out=nn.Linear(8, 4),
        query=nn.Linear(8, 8),
    )  # fmt: skip
    made = step(model, x, then=lambda out: F.cross_entropy(out, y))
    return SoftmaxHasAChoice().run(made.rehearsal())


def pooled(dim: int) -> Forward:
    return lambda self, x: self.out((torch.tanh(self.score(x)).softmax(dim) * x).sum(1))


def one_word(self: Any, x: torch.Tensor) -> torch.Tensor:
    """An attention to one thing: the mean of the words."""
    one = x.mean(1, keepdim=True)
    return self.out(((self.query(x) @ one.transpose(1, 2)).softmax(2) @ one).mean(1))


def first_step(self: Any, x: torch.Tensor) -> torch.Tensor:
    """The first step of a sequence attends to itself alone."""
    x = x[:, :1]
    return self.out(((self.query(x) @ x.transpose(1, 2)).softmax(-1) @ x).mean(1))


def squeezed(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out((self.score(x).squeeze(2).softmax(1)[..., None] * x).sum(1))


def of_classes(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(x.mean(1)).log_softmax(1)


def several_scores(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out((self.scores(x).softmax(1).mean(2, keepdim=True) * x).sum(1))


def heads_over_one_step(self: Any, x: torch.Tensor) -> torch.Tensor:
    """Sequences of one step: the axis is of the data, and not of the layer that scores it."""
    weight = self.scores(x[:, :1]).softmax(1)
    return self.out(torch.einsum("bth,btd->bd", weight, x[:, :1]))


def none(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(x.mean(1))


def test_a_softmax_over_the_axis_of_one_score() -> None:
    for dim in (2, -1):
        result = of(pooled(dim))
        assert result.outcome == "found"
        assert result.facts["given"] == [12, 6, 1]
        assert result.facts["lines"][0].startswith("test_softmax_has_a_choice.py:")
    each_alone = of(
        lambda self, x: self.out((self.scores(x).unsqueeze(3).softmax(3).sum(2) * x).mean(1))
    )
    assert each_alone.outcome == "found"


@pytest.mark.parametrize(
    "forward",
    [
        pooled(1),
        one_word,
        first_step,
        squeezed,
        of_classes,
        several_scores,
        heads_over_one_step,
    ],
)
def test_a_softmax_that_has_a_choice_or_is_meant_to_have_none(forward: Forward) -> None:
    assert of(forward).outcome == "fine"


def test_one_output_is_a_question() -> None:
    one = of(lambda self, x: self.out(self.score(x.mean(1)).softmax(1) * x.mean(1)))
    assert one.outcome == "question"
    assert of(none).outcome == "not applicable"
