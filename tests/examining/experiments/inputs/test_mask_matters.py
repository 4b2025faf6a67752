"""The mask matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiments.inputs.mask_matters import MaskMatters
from nethook.examining.rehearsal import Rehearsal
from tests.examining.experiments.steps import Calls, step

N, WIDTH, VOCAB, DIM = 16, 20, 30, 16
Forward = Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]


def of(forward: Forward, mask: Callable[[torch.Tensor], torch.Tensor]) -> Rehearsal:
    torch.manual_seed(0)
    tokens = torch.randint(5, VOCAB, (N, WIDTH))
    length = torch.randint(4, 9, (N, 1))
    tokens, label = tokens.masked_fill(torch.arange(WIDTH) >= length, 0), torch.randint(0, 3, (N,))
    model = Calls(forward, embed=nn.Embedding(VOCAB, DIM), out=nn.Linear(DIM, 3))
    made = step(model, tokens, mask(tokens), then=lambda out: F.cross_entropy(out, label))
    return made.rehearsal()


def words(tokens: torch.Tensor) -> torch.Tensor:
    return (tokens != 0).float()


def all_positions(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return self.out(self.embed(x).mean(1))


def with_mask(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weight = mask.float()[..., None]
    return self.out((self.embed(x) * weight).sum(1) / weight.sum(1))


def padding_by_itself(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return self.out(self.embed(x)[:, 0])


def test_a_mask_that_is_never_used() -> None:
    for mask in (words, lambda tokens: tokens != 0, lambda tokens: tokens == 0):
        rehearsal = of(all_positions, mask)
        assert MaskMatters().applies(rehearsal) is None
        result = MaskMatters().run(rehearsal)
        assert result.outcome == "found"
        assert 0.5 < result.facts["share"] < 0.8


@pytest.mark.parametrize("forward", [with_mask, padding_by_itself], ids=lambda one: one.__name__)
def test_where_nothing_is_wrong(forward: Forward) -> None:
    assert MaskMatters().run(of(forward, words)).outcome == "fine"


def by_its_number(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return with_mask(self, x, x != 0)


def a_sum_of_zeros(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return self.out((self.embed(x) * (x != 0)[..., None]).sum(1))


def tags(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return self.out(self.embed(x))


@pytest.mark.parametrize("forward", [by_its_number, a_sum_of_zeros], ids=lambda one: one.__name__)
def test_a_model_that_finds_padding_by_itself(forward: Forward) -> None:
    """Words in the place of padding move it, and less padding does not."""
    assert MaskMatters().run(of(forward, words)).outcome == "fine"


def test_what_is_said_of_padding_does_not_count() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(5, VOCAB, (N, WIDTH))
    tokens = tokens.masked_fill(torch.arange(WIDTH) >= torch.randint(4, 9, (N, 1)), 0)
    real, label = tokens != 0, torch.randint(0, 3, (N, WIDTH))
    for forward, outcome in (
        (tags, "fine"),
        (lambda *given: tags(*given).cumsum(1), "fine"),
        (lambda *given: tags(*given).flip(1).cumsum(1).flip(1), "question"),
    ):
        model = Calls(forward, embed=nn.Embedding(VOCAB, DIM), out=nn.Linear(DIM, 3))
        made = step(
            model, tokens, real, then=lambda out: F.cross_entropy(out[real], label[real])
        ).rehearsal()
        assert MaskMatters().run(made).outcome == outcome


def test_a_weight_for_each_place_is_a_question() -> None:
    torch.manual_seed(0)
    table = nn.Linear(WIDTH, 3)
    made = of(lambda self, x, mask: table(x.float()), words)
    assert MaskMatters().run(made).outcome == "question"


def test_where_it_does_not_apply() -> None:
    other = of(all_positions, lambda tokens: torch.randn(tokens.shape))
    assert "which tokens are padding" in (MaskMatters().applies(other) or "")
