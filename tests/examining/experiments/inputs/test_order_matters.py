"""The order matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiments.inputs.order_matters import OrderMatters
from tests.examining.experiments.steps import Calls, step

N, STEPS, VOCAB, DIM = 12, 7, 30, 16
Forward = Callable[..., torch.Tensor]


def of(forward: Forward, *more: torch.Tensor, numbers: bool = False) -> Any:
    torch.manual_seed(0)
    label = torch.randint(0, 3, (N,))
    model = Calls(
        forward, embed=nn.Embedding(VOCAB, DIM), out=nn.Linear(DIM, 3), place=nn.Embedding(9, DIM),
        rnn=nn.GRU(DIM, DIM, batch_first=True), conv=nn.Conv1d(DIM, DIM, 3), into=nn.Linear(5, DIM),
        attention=nn.MultiheadAttention(DIM, 2, batch_first=True),
    )  # fmt: skip
    given = torch.randn(N, STEPS, 5) if numbers else torch.randint(0, VOCAB, (N, STEPS))
    made = step(model, given, *more, then=lambda out: F.cross_entropy(out, label)).rehearsal()
    experiment = OrderMatters()
    reason = experiment.applies(made)
    return reason if reason is not None else experiment.run(made)


def attended(self: Any, x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    h = self.embed(x)
    return self.out(self.attention(h, h, h)[0].mean(1))


def bag(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(self.into(x).relu().mean(1))


def test_a_network_without_positions() -> None:
    for result in (of(attended), of(bag, numbers=True), of(attended, torch.ones(N, STEPS))):
        assert result.outcome == "question"
        assert result.facts == {"steps": STEPS, "rows": N}


def with_positions(self: Any, x: torch.Tensor) -> torch.Tensor:
    h = self.embed(x) + self.place(torch.arange(STEPS))
    return self.out(self.attention(h, h, h)[0].mean(1))


def recurrent(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(self.rnn(self.embed(x))[0][:, -1])


def convolved(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(self.conv(self.embed(x).transpose(1, 2)).amax(2))


def first_word(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(self.embed(x)[:, 0])


def near_on_both_sides(self: Any, x: torch.Tensor) -> torch.Tensor:
    """Distances count, and directions do not: turned round it says the same."""
    h, place = self.embed(x), torch.arange(float(STEPS))
    near = -(place[:, None] - place).abs()
    return self.out(F.scaled_dot_product_attention(h, h, h, attn_mask=near).mean(1))


@pytest.mark.parametrize(
    "forward", [with_positions, recurrent, convolved, first_word, near_on_both_sides]
)
def test_a_network_that_sees_the_order(forward: Forward) -> None:
    assert of(forward).outcome == "fine"


def test_where_it_does_not_apply() -> None:
    flat = step(nn.Linear(8, 3), torch.randn(N, 8), then=lambda out: out.square().mean())
    assert "one sequence" in (OrderMatters().applies(flat.rehearsal()) or "")
    assert "one sequence" in of(lambda self, x, y: attended(self, x), torch.randn(N, STEPS + 1))
