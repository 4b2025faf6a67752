"""Views and softmaxes of a step, with their shapes and lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.probes.calls import Call, calls_of
from tests.examining.experiments.steps import Calls, step


def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
    scores = torch.tanh(self.score(x))  # of a linear layer, handed on element by element
    weights = scores.view(12, 6).softmax(dim=1)
    of_inputs = torch.softmax(x, 2)
    return self.out((weights[..., None] * of_inputs).sum(1))


def noted() -> tuple[Call, ...]:
    x, y = torch.randn(12, 6, 8), torch.randint(4, (12,))
    model = Calls(forward, score=nn.Linear(8, 1), out=nn.Linear(8, 4))
    made = step(model, x, then=lambda out: F.cross_entropy(out.reshape(-1, 4).log_softmax(-1), y))
    return calls_of(made.rehearsal())


def test_each_call_has_its_shapes_and_where_it_stands() -> None:
    calls = noted()
    assert [(call.name, call.given, call.made, call.dim) for call in calls] == [
        ("view", (12, 6, 1), (12, 6), None),
        ("softmax", (12, 6), (12, 6), 1),
        ("softmax", (12, 6, 8), (12, 6, 8), 2),
        ("reshape", (12, 4), (12, 4), None),
        ("log_softmax", (12, 4), (12, 4), -1),
    ]
    assert [call.inside for call in calls] == [True, True, True, False, False]
    assert {call.line.rpartition(":")[0] for call in calls} == {Path(__file__).name}
    lines = [int(call.line.rpartition(":")[2]) for call in calls]
    assert lines[:3] == [lines[0], lines[0], lines[0] + 1]


def test_scores_come_from_a_linear_layer_if_nothing_else_is_in_between() -> None:
    view, weights, of_inputs, *_ = noted()
    assert view.linear
    assert weights.linear
    assert not of_inputs.linear


def test_a_step_is_looked_at_once() -> None:
    model = Calls(forward, score=nn.Linear(8, 1), out=nn.Linear(8, 4))
    made = step(model, torch.randn(12, 6, 8), then=lambda out: out.square().mean()).rehearsal()
    assert calls_of(made) is calls_of(made)
