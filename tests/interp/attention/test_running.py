"""One forward under the eyes of a consumer."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import nethook
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.interp.attention.running import run_once


class Names(OpConsumer):
    def __init__(self) -> None:
        self.names: list[str] = []
        self.grad: list[bool] = []

    def after(self, op: Op, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        self.names.append(op.address)
        self.grad.append(result.requires_grad)


def test_a_model_runs_once_in_evaluation_and_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).train()
    x = torch.ones(2, 3)
    seen = Names()
    out = run_once(model, x, seen, "nethook.test")
    assert torch.equal(out, model[0](x))
    assert seen.names == ["0/linear#0", "1/dropout#0"]
    assert seen.grad == [False, False]
    assert model[1].training
    assert not nethook.audit(model)
    graph = Names()
    run_once(model, x, graph, "nethook.test", grad=True)
    assert graph.grad == [True, True]
