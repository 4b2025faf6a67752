"""Padding adds nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence

from nethook.examining.experiments.inputs.padding_adds_nothing import PaddingAddsNothing
from nethook.examining.rehearsal import Rehearsal
from tests.examining.experiments.steps import Calls, step

N, WIDTH, VOCAB, DIM = 16, 20, 30, 16
Forward = Callable[..., torch.Tensor]


def of(forward: Forward, *, first: bool = False, mask: bool = False, lengths: bool = False) -> Any:
    """A step on padded tokens; `first`: steps lie along the first dimension."""
    torch.manual_seed(0)
    tokens = torch.randint(5, VOCAB, (N, WIDTH))
    length = torch.randint(4, 15, (N,))
    tokens = tokens.masked_fill(torch.arange(WIDTH) >= length[:, None], 0)
    label = torch.randint(0, 3, (N,))
    model = Calls(
        forward, embed=nn.Embedding(VOCAB, DIM), out=nn.Linear(DIM, 3), width=nn.Linear(WIDTH, 3),
        rnn=nn.GRU(DIM, DIM, batch_first=not first), place=nn.Embedding(WIDTH, DIM),
        attention=nn.MultiheadAttention(DIM, 2, batch_first=True),
    )  # fmt: skip
    given = [tokens.t().contiguous() if first else tokens]
    given += [tokens == 0] * mask + [length] * lengths
    return step(model, *given, then=lambda out: F.cross_entropy(out, label)).rehearsal()


def outcome(rehearsal: Rehearsal) -> Any:
    experiment = PaddingAddsNothing()
    assert experiment.applies(rehearsal) is None
    return experiment.run(rehearsal)


def last_state(self: Any, x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    return self.out(self.rnn(self.embed(x))[1][0])


def mean(self: Any, x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    return self.out(self.embed(x).mean(1))


def no_mask(self: Any, x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    h = self.embed(x)
    return self.out(self.attention(h, h, h)[0][:, 0])


def mask_unused(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return self.out(self.embed(x).sum(1) / 9 + 0 * mask.float().mean(1, keepdim=True))


@pytest.mark.parametrize(
    ("forward", "facts"),
    [
        (last_state, {}),
        (last_state, {"first": True}),
        (last_state, {"lengths": True}),
        (mean, {}),
        (no_mask, {}),
        (mask_unused, {"mask": True}),
    ],
)
def test_a_model_that_reads_padding(forward: Forward, facts: dict[str, bool]) -> None:
    result = outcome(of(forward, **facts))
    assert result.outcome == "question"
    assert result.facts["moved"] > 0.01
    assert 0.3 < result.facts["share"] < 0.7


def packed(self: Any, x: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    sequence = pack_padded_sequence(self.embed(x), length, batch_first=True, enforce_sorted=False)
    return self.out(self.rnn(sequence)[1][0])


def at_the_last_word(self: Any, x: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    return self.out(self.rnn(self.embed(x))[0][torch.arange(N), length - 1])


def masked_mean(self: Any, x: torch.Tensor) -> torch.Tensor:
    words = (x != 0)[..., None]
    return self.out((self.embed(x) * words).sum(1) / words.sum(1))


def masked_attention(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    h = self.embed(x)
    return self.out(self.attention(h, h, h, key_padding_mask=mask)[0][:, 0])


def first_word(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(self.embed(x)[:, 0])


def largest(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(self.embed(x).masked_fill((x == 0)[..., None], -9.0).amax(1))


@pytest.mark.parametrize(
    ("forward", "facts"),
    [
        (packed, {"lengths": True}),
        (at_the_last_word, {"lengths": True}),
        (masked_mean, {}),
        (masked_attention, {"mask": True}),
        (first_word, {}),
        (largest, {}),
    ],
)
def test_a_model_that_leaves_padding_out(forward: Forward, facts: dict[str, bool]) -> None:
    assert outcome(of(forward, **facts)).outcome == "fine"


def test_where_it_does_not_apply() -> None:
    other = step(nn.Linear(8, 3), torch.randn(N, 8), then=lambda out: out.square().mean())
    assert "padded at their ends" in (PaddingAddsNothing().applies(other.rehearsal()) or "")
    per_step = of(lambda self, x: self.out(self.embed(x)).amax(2).amax(1, keepdim=True) + x * 0.0)
    assert outcome(per_step).outcome == "not applicable"
