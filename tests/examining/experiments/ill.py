"""Faulty steps: the experiment that must find each, and nobody else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from nethook.addresses.inputs import Inputs
from tests.examining.experiments.healthy import (
    Reader,
    TimeFirst,
    classes,
    hides,
    lengths,
    mlp,
    segmented,
    shapes,
    tags,
    text,
)
from tests.examining.experiments.steps import Calls, Step, step

ILL: dict[str, tuple[str, Callable[[], Step]]] = {}

MIXED = "samples are independent"
ROWS = "predictions line up with targets"
AHEAD = "no look ahead"
TARGET = "what the target is"
REPEATS = "evaluation repeats itself"
MATTERS = "the input matters"
WORDS = "the words matter"
LAYOUT = "input and target lie alike"
SCORES = "the loss scores what differs"


def ill(experiment: str) -> Callable[[Callable[[], Step]], Callable[[], Step]]:
    def note(make: Callable[[], Step]) -> Callable[[], Step]:
        ILL[make.__name__] = experiment, make
        return make

    return note


def labelled(model: nn.Module, x: torch.Tensor, n: int = 16, of: int = 3) -> Step:
    y = classes(n, of)
    return step(model, x, then=lambda out: F.cross_entropy(out, y), loader=n)


# -- samples mixed -----------------------------------------------------------------------------


@ill(MIXED)
def softmax_over_the_batch() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = self.words(x)
        return self.head((self.score(h).softmax(0) * h).sum(1))

    parts = {"words": nn.Embedding(30, 8), "score": nn.Linear(8, 1), "head": nn.Linear(8, 3)}
    return labelled(Calls(forward, **parts), torch.randint(30, (16, 9)))


@ill(MIXED)
def attention_over_the_batch() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.attention(x, x, x)[0].mean(1))

    parts = {"attention": nn.MultiheadAttention(8, 2), "head": nn.Linear(8, 3)}
    return labelled(Calls(forward, **parts), torch.randn(16, 5, 8))


@ill(MIXED)
def recurrence_over_the_batch() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0][:, -1])

    parts = {"rnn": nn.LSTM(8, 8), "head": nn.Linear(8, 3)}
    return labelled(Calls(forward, **parts), torch.randn(16, 5, 8))


@ill(MIXED)
def state_of_two_directions_viewed() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        state = self.rnn(x)[1]
        return self.head(state.view(len(x), -1))

    parts = {"rnn": nn.GRU(8, 8, bidirectional=True, batch_first=True), "head": nn.Linear(16, 3)}
    return labelled(Calls(forward, **parts), torch.randn(16, 5, 8))


@ill(MIXED)
def view_for_permute() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = self.rnn(x.transpose(0, 1))[0]  # time, batch, units
        return self.head(h.reshape(len(x), -1))

    parts = {"rnn": nn.GRU(4, 6), "head": nn.Linear(30, 3)}
    return labelled(Calls(forward, **parts), torch.randn(16, 5, 4))


@ill(MIXED)
def normalised_over_the_batch_in_the_forward() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.softmax(self.net(x), dim=0))

    return labelled(Calls(forward, net=mlp(8, 16), head=nn.Linear(16, 3)), torch.randn(16, 8))


# -- rows beside other targets -----------------------------------------------------------------


@ill(ROWS)
def logits_viewed_in_the_model() -> Step:
    class Actor(TimeFirst):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).reshape(-1, 4).view(len(x), -1, x.size(1))

    actions = torch.randint(4, (12, 16))
    return step(Actor(), torch.randn(12, 16, 6), then=lambda out: F.cross_entropy(out, actions))


@ill(ROWS)
def scores_reshaped_for_the_loss() -> Step:
    tags = torch.randint(3, (8, 20))
    return step(
        nn.Conv1d(4, 3, 3, padding=1), torch.randn(8, 4, 20),
        then=lambda out: F.nll_loss(out.log_softmax(1).reshape(-1, 3), tags.view(-1)), loader=8,
    )  # fmt: skip


@ill(ROWS)
def scores_viewed_class_first() -> Step:
    tags = torch.randint(5, (8, 12))
    model = Calls(lambda self, x: self.head(self.rnn(x)[0]), rnn=nn.GRU(4, 8, batch_first=True),
                  head=nn.Linear(8, 5))  # fmt: skip
    return step(
        model, torch.randn(8, 12, 4),
        then=lambda out: F.cross_entropy(out.reshape(8, 5, 12), tags), loader=8,
    )  # fmt: skip


@ill(ROWS)
def time_first_against_batch_first() -> Step:
    tags = torch.randint(4, (8, 12))  # batch first
    return step(
        TimeFirst(), torch.randn(12, 8, 6),
        then=lambda out: F.cross_entropy(out.reshape(-1, 4), tags.reshape(-1)), loader=8,
    )  # fmt: skip


@ill(ROWS)
def masks_viewed_channels_last() -> Step:
    masks = torch.randint(3, (4, 8, 10))
    return step(
        nn.Conv2d(2, 3, 3, padding=1), torch.randn(4, 2, 8, 10),
        then=lambda out: F.cross_entropy(out.view(-1, 3), masks.view(-1)), loader=4,
    )  # fmt: skip


@ill(ROWS)
def likelihood_by_hand_of_a_view() -> Step:
    tags = torch.randint(3, (8, 20))
    return step(
        nn.Conv1d(4, 3, 3, padding=1), torch.randn(8, 4, 20),
        then=lambda out: -out.reshape(8, 20, 3).log_softmax(-1).gather(2, tags[:, :, None]).mean(),
        loader=8,
    )  # fmt: skip


@ill(ROWS)
def regression_of_a_view() -> Step:
    values = torch.randn(8, 20, 3)
    return step(
        nn.Conv1d(4, 3, 3, padding=1), torch.randn(8, 4, 20),
        then=lambda out: ((out.reshape(8, 20, 3) - values) ** 2).mean(), loader=8,
    )  # fmt: skip


# -- the future is seen ------------------------------------------------------------------------


@ill(AHEAD)
def no_causal_mask() -> Step:
    x = text()
    return step(
        Reader(causal=False), x[:, :-1],
        then=lambda out: F.cross_entropy(out.reshape(-1, 24), x[:, 1:].reshape(-1)), loader=8,
    )  # fmt: skip


@ill(AHEAD)
def language_model_that_reads_both_ways() -> Step:
    x = text()
    model = Calls(
        lambda self, x: self.head(self.rnn(self.words(x))[0]), words=nn.Embedding(24, 8),
        rnn=nn.LSTM(8, 8, bidirectional=True, batch_first=True), head=nn.Linear(16, 24),
    )  # fmt: skip
    return step(
        model, x, then=lambda out: F.cross_entropy(out[:, :-1].transpose(1, 2), x[:, 1:]), loader=8
    )


@ill(AHEAD)
def convolution_padded_on_both_sides() -> Step:
    x = torch.randn(8, 1, 24)
    net = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv1d(8, 1, 1))
    return step(net, x[..., :-1], then=lambda out: F.mse_loss(out, x[..., 1:]), loader=8)


@ill(AHEAD)
def mask_of_the_wrong_half() -> Step:
    class Wrong(Reader):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mask = torch.ones(x.size(1), x.size(1), dtype=torch.bool).tril(-1)
            return self.head(self.blocks(self.words(x) + self.places[: x.size(1)], mask=mask))

    x = text()
    return step(
        Wrong(causal=True), x[:, :-1],
        then=lambda out: F.cross_entropy(out.reshape(-1, 24), x[:, 1:].reshape(-1)), loader=8,
    )  # fmt: skip


@ill(AHEAD)
def mask_that_is_off_by_one() -> Step:
    class Off(Reader):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mask = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(2)
            return self.head(self.blocks(self.words(x) + self.places[: x.size(1)], mask=mask))

    x = text()
    return step(
        Off(causal=True), x[:, :-1],
        then=lambda out: F.cross_entropy(out.reshape(-1, 24), x[:, 1:].reshape(-1)), loader=8,
    )  # fmt: skip


# -- what the target is ------------------------------------------------------------------------


@ill(TARGET)
def labels_not_shifted() -> Step:
    x = text()
    return step(
        Reader(causal=True), x, then=lambda out: F.cross_entropy(out.transpose(1, 2), x), loader=8
    )


@ill(TARGET)
def labels_shifted_twice_by_a_library() -> Step:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=24,
        n_positions=32,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    x = text()
    return Step(
        GPT2LMHeadModel(config), Inputs((), {"input_ids": x[:, :-1], "labels": x[:, 1:]}),
        lambda out: out.loss, loader=8,
    )  # fmt: skip


@ill(TARGET)
def labels_shifted_twice_by_hand() -> Step:
    x = text()
    y = x[:, 1:]
    return step(
        Reader(causal=True), x[:, :-1],
        then=lambda out: F.cross_entropy(out[:, :-1].reshape(-1, 24), y[:, 1:].reshape(-1)),
        loader=8,
    )  # fmt: skip


@ill(TARGET)
def window_holds_the_target() -> Step:
    series = torch.randn(16, 25)
    model = Calls(lambda self, x: self.head(self.rnn(x[..., None])[0][:, -1]).squeeze(1),
                  rnn=nn.GRU(1, 8, batch_first=True), head=nn.Linear(8, 1))  # fmt: skip
    return step(model, series[:, 1:], then=lambda out: F.mse_loss(out, series[:, -1]), loader=16)


@ill(TARGET)
def table_holds_the_target() -> Step:
    table = torch.randn(16, 9)
    return step(mlp(9, 16, 1), table, then=lambda out: F.mse_loss(out, table[:, 3:4]), loader=16)


@ill(TARGET)
def recurrent_model_of_its_own_input() -> Step:
    x = text(14, 9)
    model = Calls(
        lambda self, x: self.head(self.rnn(self.words(x))[0]), words=nn.Embedding(24, 8),
        rnn=nn.LSTM(8, 8), head=nn.Linear(8, 24),
    )  # fmt: skip
    return step(model, x, then=lambda out: F.cross_entropy(out.reshape(-1, 24), x.reshape(-1)))


# -- random evaluation -------------------------------------------------------------------------


@ill(REPEATS)
def dropout_without_training() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.two(F.dropout(self.one(x).relu(), p=0.4))

    return labelled(Calls(forward, one=nn.Linear(8, 16), two=nn.Linear(16, 3)), torch.randn(16, 8))


@ill(REPEATS)
def dropout_made_in_the_forward() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.two(nn.Dropout(0.4)(self.one(x).relu()))

    return labelled(Calls(forward, one=nn.Linear(8, 16), two=nn.Linear(16, 3)), torch.randn(16, 8))


@ill(REPEATS)
def dropout_of_attention_always_on() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.head(F.scaled_dot_product_attention(q, k, v, dropout_p=0.3).mean(1))

    return labelled(
        Calls(forward, qkv=nn.Linear(8, 24), head=nn.Linear(8, 3)), torch.randn(16, 5, 8)
    )


@ill(REPEATS)
def dropout_in_a_list() -> Step:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(8, 16), nn.Linear(16, 3)
            self.drops = [nn.Dropout(0.4)]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.two(self.drops[0](self.one(x).relu()))

    return labelled(Net(), torch.randn(16, 8))


# -- input without effect ----------------------------------------------------------------------


@ill(MATTERS)
def input_overwritten() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        x = torch.zeros_like(x)
        return self.net(x)

    return labelled(Calls(forward, net=mlp(8, 16, 3)), torch.randn(16, 8))


@ill(MATTERS)
def softmax_of_one_class() -> Step:
    y = torch.rand(16, 1)
    return step(
        nn.Sequential(*mlp(8, 16, 1), nn.Softmax(1)), torch.randn(16, 8),
        then=lambda out: F.binary_cross_entropy(out, y) + 0 * math.pi, loader=16,
    )  # fmt: skip


# -- only padding is read ----------------------------------------------------------------------


def padded(forward: Callable[..., torch.Tensor], *, left: bool = False, **parts: nn.Module) -> Step:
    """Sequences of different lengths; two of them are full, so that inputs matter."""
    lengths = torch.tensor([12, 12, *range(3, 10), *range(3, 10)])[:, None]
    pads = torch.arange(12) >= lengths
    words = torch.randint(5, 30, (16, 12))
    words = words.masked_fill(pads.flip(1) if left else pads, 0)
    parts = {"embed": nn.Embedding(30, 8), "head": nn.Linear(8, 3), **parts}
    return labelled(Calls(forward, **parts), words)


@ill(WORDS)
def output_read_at_the_last_position() -> Step:
    return padded(lambda self, x: self.head(self.embed(x)[:, -1]))


@ill(WORDS)
def output_read_at_the_first_position_of_what_is_padded_there() -> Step:
    return padded(lambda self, x: self.head(self.embed(x)[:, 0]), left=True)


@ill(WORDS)
def mean_over_the_padding() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        mask = (x == 0).float()[..., None] + 1e-9
        return self.head((self.embed(x) * mask).sum(1) / mask.sum(1))

    return padded(forward)


@ill(WORDS)
def mask_of_attention_turned_around() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = self.embed(x)
        scores = self.score(h).squeeze(-1).masked_fill(x != 0, -1e9)
        return self.head((scores.softmax(1)[..., None] * h).sum(1))

    return padded(forward, score=nn.Linear(8, 1))


# -- maps of targets --------------------------------------------------------------------------


@ill(LAYOUT)
def masks_with_width_first() -> Step:
    pictures, maps = shapes()
    return segmented(pictures, maps.transpose(1, 2).contiguous())


@ill(LAYOUT)
def masks_upside_down() -> Step:
    pictures, maps = shapes()
    return segmented(pictures, maps.flip(1))


@ill(LAYOUT)
def flips_by_two_throws_of_the_coin() -> Step:
    pictures, maps = shapes(32)
    mirrored = maps.clone()
    mirrored[::2] = mirrored[::2].flip(2)
    order = torch.randperm(32, generator=torch.Generator().manual_seed(0))
    return segmented(pictures[order], mirrored[order])


@ill(LAYOUT)
def classes_turned_against_their_picture() -> Step:
    pictures, maps = shapes()
    turned = maps.flip(1, 2).long()
    model = nn.Conv2d(1, 2, 3, padding=1)
    return step(model, pictures, then=lambda out: F.cross_entropy(out, turned), loader=16)


# -- what the loss scores ---------------------------------------------------------------------


@ill(SCORES)
def mask_of_the_loss_inverted() -> Step:
    x, real = text(), lengths()
    y = tags(real)

    def loss(out: torch.Tensor) -> torch.Tensor:
        each = F.cross_entropy(out.transpose(1, 2), y, reduction="none")
        return (each * ~real).sum() / (~real).sum()

    return step(Reader(causal=False), x, then=loss, loader=8)


@ill(SCORES)
def only_frames_after_the_end_count() -> Step:
    x, real = torch.randn(8, 14, 4), lengths()
    y = torch.randn(8, 14, 4) * real[..., None]
    return step(
        nn.Linear(4, 4), x,
        then=lambda out: (F.mse_loss(out, y, reduction="none") * ~real[..., None]).mean(), loader=8,
    )  # fmt: skip


@ill(TARGET)
def tokens_given_without_their_mask() -> Step:
    def forward(self: Any, ids: torch.Tensor) -> torch.Tensor:
        hidden = torch.rand(ids.shape) < 0.3
        out = self.reader(ids)
        return F.cross_entropy(out.transpose(1, 2), torch.where(hidden, ids, -1), ignore_index=-1)

    return hides(forward)


@ill(SCORES)
def only_padding_is_taken_out_of_the_batch() -> Step:
    x, real = text(), lengths()
    y = tags(real)

    def loss(out: torch.Tensor) -> torch.Tensor:
        counts = (~real).float()
        each = -out.log_softmax(2).gather(2, y[..., None])[..., 0]
        return (each * counts).sum() / counts.sum()

    return step(Reader(causal=False), x, then=loss, loader=8)


@ill(SCORES)
def weights_of_the_wrong_half() -> Step:
    x, real = torch.randn(8, 14, 4), lengths()
    y = torch.randn(8, 14, 1) * real[..., None]
    weights = 1.0 - real[..., None].float()
    return step(
        mlp(4, 1), x, then=lambda out: (weights * (out - y).abs()).sum() / weights.sum(), loader=8
    )
