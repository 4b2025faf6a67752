"""Evaluation repeats itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.addresses.inputs import Inputs
from nethook.examining.experiments.network.evaluation_repeats import EvaluationRepeats
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.ill import ILL
from tests.examining.experiments.steps import Calls, Step


@pytest.mark.parametrize(
    ("name", "operation", "p"),
    [
        ("dropout_without_training", "F.dropout", 0.4),
        ("dropout_made_in_the_forward", "F.dropout", 0.4),
        ("dropout_of_attention_always_on", "F.scaled_dot_product_attention", 0.3),
        ("dropout_in_a_list", "F.dropout", 0.4),
    ],
)
def test_dropout_that_nobody_switches_off(name: str, operation: str, p: float) -> None:
    result = EvaluationRepeats().run(ILL[name][1]().rehearsal())
    assert (result.outcome, result.facts["operation"], result.facts["p"]) == ("found", operation, p)
    (line,) = result.facts["lines"]
    assert line.startswith("ill.py:")


def test_dropout_that_is_switched_on_in_words() -> None:
    for name in ("monte_carlo_dropout", "monte_carlo_dropout_layer"):
        result = EvaluationRepeats().run(HEALTHY[name]().rehearsal())
        assert result.outcome == "question"
        assert "by the script itself" in result.reason


def test_a_model_that_samples() -> None:
    result = EvaluationRepeats().run(HEALTHY["variational_autoencoder"]().rehearsal())
    assert result.outcome == "question"
    assert "operation" not in result.facts


def test_it_repeats_itself() -> None:
    for name in ("dropout_as_it_should_be", "stochastic_depth_written_by_hand"):
        assert EvaluationRepeats().run(HEALTHY[name]().rehearsal()).outcome == "fine"


def _with_argument(forward: Callable[..., torch.Tensor], **kwargs: Any) -> Step:
    model = Calls(forward, one=nn.Linear(8, 16), two=nn.Linear(16, 3))
    return Step(model, Inputs((torch.randn(16, 8),), kwargs), torch.Tensor.sum)


def _random_if(name: str, value: bool) -> Step:
    def forward(self: Any, x: torch.Tensor, mask: Any = None, **mode: bool) -> torch.Tensor:
        return self.two(F.dropout(self.one(x).relu(), 0.3, mode[name] is value))

    return _with_argument(forward, mask=None, **{name: value})


@pytest.mark.parametrize(("name", "value"), [("is_training", True), ("deterministic", False)])
def test_the_mode_is_an_argument_of_the_call(name: str, value: bool) -> None:
    result = EvaluationRepeats().run(_random_if(name, value).rehearsal())
    assert (result.outcome, result.facts["switch"]) == ("fine", name)


def test_an_argument_named_training_follows_the_mode() -> None:
    result = EvaluationRepeats().run(_random_if("training", True).rehearsal())
    assert (result.outcome, result.facts) == ("fine", {"differs": 0.0})


def test_an_argument_that_switches_something_else() -> None:
    def forward(self: Any, x: torch.Tensor, scaled: bool, odd: bool) -> torch.Tensor:
        if not odd:
            raise ValueError(odd)
        return self.two(F.dropout(self.one(x).relu(), 0.3)) * (2.0 if scaled else 1.0)

    result = EvaluationRepeats().run(_with_argument(forward, scaled=True, odd=True).rehearsal())
    assert (result.outcome, result.facts["operation"]) == ("found", "F.dropout")
