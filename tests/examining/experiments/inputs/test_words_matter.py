"""The words matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.examining.experiments.inputs.words_matter import WordsMatter
from tests.examining.experiments.steps import Calls, Step, step

N, WIDTH, VOCAB, DIM = 16, 20, 30, 16
Forward = Callable[[Any, torch.Tensor], torch.Tensor]


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    words = torch.randint(5, VOCAB, (N, WIDTH))
    length = torch.randint(4, 9, (N, 1))
    return words.masked_fill(torch.arange(WIDTH) >= length, 0), torch.randint(0, 3, (N,))


def of(forward: Forward, **parts: nn.Module) -> Step:
    torch.manual_seed(0)
    tokens, label = batch()
    parts = {"embed": nn.Embedding(VOCAB, DIM), "out": nn.Linear(DIM, 3), **parts}
    model = Calls(forward, **parts)
    return step(model, tokens, then=lambda out: F.cross_entropy(out, label), loader=N)


def attends(turned: bool) -> Forward:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        words, mask = self.embed(x), x == 0
        mask = mask if turned else ~mask
        query = self.query.weight.expand(len(x), -1, -1)
        seen = F.scaled_dot_product_attention(query, words, words, attn_mask=mask[:, None, :])
        return self.out(seen[:, 0])

    return forward


def last_position(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(self.embed(x)[:, -1])


def last_word(self: Any, x: torch.Tensor) -> torch.Tensor:
    length = (x != 0).sum(1)
    return self.out(self.embed(x)[torch.arange(len(x)), length - 1])


def mean(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(self.embed(x).mean(1))


def packed(self: Any, x: torch.Tensor) -> torch.Tensor:
    length = (x != 0).sum(1)
    rows = nn.utils.rnn.pack_padded_sequence(
        self.embed(x), length, batch_first=True, enforce_sorted=False
    )
    return self.out(self.rnn(rows)[1][-1])


def after_padding(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(self.rnn(self.embed(x))[0][:, -1])


def first_token(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.out(self.embed(torch.cat([torch.ones_like(x[:, :1]), x], 1))[:, 0])


def outcome(made: Step) -> str:
    rehearsal = made.rehearsal()
    assert WordsMatter().applies(rehearsal) is None
    return WordsMatter().run(rehearsal).outcome


def test_a_mask_that_is_the_wrong_way_round() -> None:
    assert outcome(of(attends(turned=True), query=nn.Embedding(1, DIM))) == "found"
    assert outcome(of(attends(turned=False), query=nn.Embedding(1, DIM))) == "fine"


def test_an_output_that_is_read_behind_the_words() -> None:
    result = WordsMatter().run(of(last_position).rehearsal())
    assert result.outcome == "found"
    assert result.facts["sequences"] == N
    assert 0.5 < result.facts["share"] < 0.8


@pytest.mark.parametrize("forward", [last_word, mean], ids=lambda one: one.__name__)
def test_words_that_matter(forward: Forward) -> None:
    assert outcome(of(forward)) == "fine"


def test_recurrent_layers() -> None:
    assert outcome(of(packed, rnn=nn.GRU(DIM, DIM, batch_first=True))) == "fine"
    # A short padding leaves something of the words: no fault is shown.
    assert outcome(of(after_padding, rnn=nn.GRU(DIM, DIM, batch_first=True))) == "fine"


def test_neither_words_nor_padding_matter() -> None:
    assert outcome(of(first_token)) == "fine"
    begins_at_zero = nn.Linear(DIM, 3)
    nn.init.zeros_(begins_at_zero.weight)
    assert outcome(of(last_position, out=begins_at_zero)) == "fine"


def test_weights_that_let_no_words_through_yet() -> None:
    def gated(self: Any, x: torch.Tensor) -> torch.Tensor:
        words = self.embed(x)
        return self.out(words[:, -1] + self.gate(words.mean(1)))

    gate = nn.Linear(DIM, DIM, bias=False)
    nn.init.zeros_(gate.weight)
    made = of(gated, gate=gate)
    with torch.no_grad():  # mean and last position both have the padding in them
        assert outcome(made) == "question"


def test_tags_of_each_word() -> None:
    torch.manual_seed(0)
    tokens, _ = batch()
    label = torch.randint(0, 3, (N * WIDTH,))
    model = nn.Sequential(nn.Embedding(VOCAB, DIM), nn.Linear(DIM, 3))
    made = step(model, tokens, then=lambda out: F.cross_entropy(out.flatten(0, 1), label))
    assert outcome(made) == "fine"


def test_where_nothing_is_padded() -> None:
    torch.manual_seed(0)
    label = torch.randint(0, 3, (N,))
    model = Calls(mean, embed=nn.Embedding(VOCAB, DIM), out=nn.Linear(DIM, 3))
    tokens = torch.randint(0, VOCAB, (N, WIDTH))
    made = step(model, tokens, then=lambda out: F.cross_entropy(out, label))
    assert "no input holds padded sequences" in (WordsMatter().applies(made.rehearsal()) or "")
