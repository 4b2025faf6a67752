"""Healthy steps in which dependence, order or randomness is meant: what experiments must not find.

Each function makes one step. They are written against the experiments: every one of them looks, to
a careless experiment, like a bug.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from nethook.addresses.inputs import Inputs
from tests.examining.experiments.steps import Calls, Step, step

HEALTHY: dict[str, Callable[[], Step]] = {}


def healthy(make: Callable[[], Step]) -> Callable[[], Step]:
    HEALTHY[make.__name__] = make
    return make


def mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def classes(n: int, of: int = 3) -> torch.Tensor:
    return torch.randint(of, (n,))


# -- rows that are no samples ------------------------------------------------------------------


@healthy
def classifier() -> Step:
    y = classes(16)
    return step(
        mlp(8, 16, 3), torch.randn(16, 8), then=lambda out: F.cross_entropy(out, y), loader=16
    )


@healthy
def listwise_ranker_of_changing_size() -> Step:
    relevance = torch.rand(12)
    return step(
        Calls(lambda self, x: self.net(x).squeeze(-1), net=mlp(8, 16, 1)), torch.randn(12, 8),
        then=lambda s: -(relevance.softmax(0) * s.log_softmax(0)).sum(), sizes=(9, 12, 14, 12),
    )  # fmt: skip


@healthy
def listwise_ranker_of_fixed_size_with_attention() -> Step:
    attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.attention(x[None], x[None], x[None])
        return self.head(y[0]).squeeze(-1)

    relevance = torch.rand(10)
    return step(
        Calls(forward, attention=attention, head=nn.Linear(8, 1)), torch.randn(10, 8),
        then=lambda s: F.cross_entropy(s[None], relevance.softmax(0)[None]), sizes=(10,) * 4,
    )  # fmt: skip


@healthy
def set_transformer_scores_elements() -> Step:
    attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.attention(x[None], x[None], x[None])
        return self.head(y[0])

    y = classes(20, 2)
    return step(
        Calls(forward, attention=attention, head=nn.Linear(8, 2)), torch.randn(20, 8),
        then=lambda out: F.cross_entropy(out, y), sizes=(20,) * 4,
    )  # fmt: skip


@healthy
def contrastive_pairs() -> Step:
    def forward(self: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.normalize(self.net(a)) @ F.normalize(self.net(b)).T / 0.1

    return step(
        Calls(forward, net=mlp(8, 16, 8)), torch.randn(16, 8), torch.randn(16, 8),
        then=lambda out: F.cross_entropy(out, torch.arange(16)), loader=16,
    )  # fmt: skip


@healthy
def clip_returns_both_tables() -> Step:
    def forward(self: Any, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        table = self.image(a) @ self.text(b).T
        return {"per_image": table, "per_text": table.T}

    def both(out: dict[str, torch.Tensor]) -> torch.Tensor:
        y = torch.arange(12)
        return (F.cross_entropy(out["per_image"], y) + F.cross_entropy(out["per_text"], y)) / 2

    return step(
        Calls(forward, image=mlp(8, 8), text=mlp(6, 8)), torch.randn(12, 8), torch.randn(12, 6),
        then=both, loader=12,
    )  # fmt: skip


@healthy
def in_batch_negatives_after_the_model() -> Step:
    docs = torch.randn(16, 8)
    return step(
        mlp(8, 16, 8), torch.randn(16, 8),
        then=lambda q: F.cross_entropy(q @ docs.T, torch.arange(16)), loader=16,
    )  # fmt: skip


@healthy
def simclr_two_views() -> Step:
    def loss(z: torch.Tensor) -> torch.Tensor:
        z = F.normalize(z)
        table = (z @ z.T / 0.2).masked_fill(torch.eye(16, dtype=torch.bool), -1e9)
        return F.cross_entropy(table, torch.cat([torch.arange(8, 16), torch.arange(8)]))

    return step(mlp(8, 16, 8), torch.randn(16, 8), then=loss, loader=8)


@healthy
def batch_hard_triplets() -> Step:
    y = classes(16)

    def loss(z: torch.Tensor) -> torch.Tensor:
        far = torch.cdist(z, z)
        same = y[:, None] == y[None]
        hardest = (far * same).amax(1) - far.masked_fill(same, 1e9).amin(1)
        return F.relu(hardest + 0.2).mean()

    return step(mlp(8, 16, 8), torch.randn(16, 8), then=loss, loader=16)


@healthy
def graph_network_with_adjacency() -> Step:
    def forward(self: Any, x: torch.Tensor, links: torch.Tensor) -> torch.Tensor:
        return self.two(links @ torch.relu(self.one(links @ x)))

    links = (torch.rand(24, 24) < 0.2).float() + torch.eye(24)
    y = classes(24)
    return step(
        Calls(forward, one=nn.Linear(8, 16), two=nn.Linear(16, 3)), torch.randn(24, 8),
        links / links.sum(1, keepdim=True), then=lambda out: F.cross_entropy(out, y),
    )  # fmt: skip


@healthy
def graph_network_with_edges() -> Step:
    def forward(self: Any, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        h = self.one(x)
        return self.two(torch.zeros_like(h).index_add(0, edges[1], h[edges[0]]).relu())

    y = classes(24)
    return step(
        Calls(forward, one=nn.Linear(8, 16), two=nn.Linear(16, 3)), torch.randn(24, 8),
        torch.randint(24, (2, 90)), then=lambda out: F.cross_entropy(out, y),
    )  # fmt: skip


@healthy
def graph_network_that_holds_its_links() -> Step:
    model = Calls(lambda self, x: self.net(self.links @ x), net=mlp(8, 16, 3))
    model.register_buffer("links", torch.rand(20, 20))
    y = classes(20)
    return step(model, torch.randn(20, 8), then=lambda out: F.cross_entropy(out, y))


@healthy
def full_batch_attention_over_rows() -> Step:
    y = classes(20)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = self.net(x)
        return self.head((h @ h.T).softmax(-1) @ h)

    return step(
        Calls(forward, net=mlp(8, 16), head=nn.Linear(16, 3)), torch.randn(20, 8),
        then=lambda out: F.cross_entropy(out, y), repeats=True,
    )  # fmt: skip


@healthy
def bag_of_instances() -> Step:
    def forward(self: Any, bag: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.net(bag)
        weights = self.attention(h).T.softmax(1)
        return torch.sigmoid(self.head(weights @ h)), weights

    return step(
        Calls(forward, net=mlp(8, 16), attention=nn.Linear(16, 1), head=nn.Linear(16, 1)),
        torch.randn(11, 8), then=lambda out: F.binary_cross_entropy(out[0], torch.ones(1, 1)),
        loader=1,
    )  # fmt: skip


@healthy
def clips_of_frames() -> Step:
    y = classes(4)
    return step(
        Calls(lambda self, x: self.head(self.net(x).view(4, 5, 16).mean(1)), net=mlp(8, 16),
              head=nn.Linear(16, 3)),
        torch.randn(20, 8), then=lambda out: F.cross_entropy(out, y), loader=4,
    )  # fmt: skip


@healthy
def mixup_in_the_forward() -> Step:
    y = classes(16)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = self.one(x)
        if self.training:
            h = 0.7 * h + 0.3 * h[torch.randperm(len(h))]
        return self.two(h.relu())

    return step(
        Calls(forward, one=nn.Linear(8, 16), two=nn.Linear(16, 3)), torch.randn(16, 8),
        then=lambda out: 0.7 * F.cross_entropy(out, y) + 0.3 * F.cross_entropy(out, y.flip(0)),
        loader=16,
    )  # fmt: skip


@healthy
def batch_norm_in_training() -> Step:
    y = classes(16)
    net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    return step(net, torch.randn(16, 8), then=lambda out: F.cross_entropy(out, y), loader=16)


@healthy
def batch_norm_without_statistics() -> Step:
    y = classes(16)
    norm = nn.BatchNorm1d(16, track_running_stats=False)
    net = nn.Sequential(nn.Linear(8, 16), norm, nn.ReLU(), nn.Linear(16, 3))
    return step(net, torch.randn(16, 8), then=lambda out: F.cross_entropy(out, y), loader=16)


@healthy
def batch_norm_of_one_task_at_a_time() -> Step:
    y = classes(16)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:  # as few-shot learners do
        return self.two(F.batch_norm(self.one(x), None, None, training=True).relu())

    return step(
        Calls(forward, one=nn.Linear(8, 16), two=nn.Linear(16, 3)), torch.randn(16, 8),
        then=lambda out: F.cross_entropy(out, y), loader=16,
    )  # fmt: skip


@healthy
def minibatch_discrimination() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = self.net(x)
        apart = (h[:, None] - h[None]).abs().sum(2)
        return self.head(torch.cat([h, (-apart).exp().sum(1, keepdim=True)], 1))

    return step(
        Calls(forward, net=mlp(8, 16), head=nn.Linear(17, 1)), torch.randn(16, 8),
        then=lambda out: F.binary_cross_entropy_with_logits(out, torch.ones(16, 1)), loader=16,
    )  # fmt: skip


@healthy
def critic_without_targets() -> Step:
    return step(mlp(8, 16, 1), torch.randn(16, 8), then=lambda out: -out.mean(), loader=16)


@healthy
def experts_with_limited_room() -> Step:
    y = classes(32)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        gate = self.gate(x).softmax(-1)
        out = torch.zeros(len(x), 3)
        for number, expert in enumerate((self.one, self.two)):
            chosen = (gate.argmax(1) == number).nonzero().reshape(-1)[:10]
            out = out.index_add(0, chosen, expert(x[chosen]) * gate[chosen, number, None])
        return out

    return step(
        Calls(forward, gate=nn.Linear(8, 2), one=mlp(8, 16, 3), two=mlp(8, 16, 3)),
        torch.randn(32, 8), then=lambda out: F.cross_entropy(out, y), loader=32,
    )  # fmt: skip


@healthy
def experts_for_tokens_with_limited_room() -> Step:
    y = classes(16)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = self.words(x).mean(1)
        gate = self.gate(h).softmax(-1)
        out = torch.zeros(len(x), 3)
        for number, expert in enumerate((self.one, self.two)):
            chosen = (gate.argmax(1) == number).nonzero().reshape(-1)[:6]
            out = out.index_add(0, chosen, expert(h[chosen]) * gate[chosen, number, None])
        return out

    return step(
        Calls(forward, words=nn.Embedding(200, 8), gate=nn.Linear(8, 2), one=mlp(8, 16, 3),
              two=mlp(8, 16, 3)),
        torch.randint(200, (16, 5)), then=lambda out: F.cross_entropy(out, y), loader=16,
    )  # fmt: skip


@healthy
def physics_with_second_derivatives() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)

    x = torch.rand(32, 1)
    y = torch.sin(x)
    return step(
        Calls(forward, net=mlp(1, 16, 1)), x, then=lambda out: F.mse_loss(out, y), repeats=True
    )


@healthy
def learning_the_identity() -> Step:
    x = torch.randn(32, 1)
    return step(mlp(1, 16, 1), x, then=lambda out: F.mse_loss(out, x), loader=32)


# -- time first, sorted, packed ----------------------------------------------------------------


class TimeFirst(nn.Module):
    def __init__(self, out: int = 4) -> None:
        super().__init__()
        self.rnn = nn.LSTM(6, 16)
        self.head = nn.Linear(16, out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0])


@healthy
def rollouts_time_first() -> Step:
    actions = torch.randint(4, (12, 8))
    return step(
        TimeFirst(), torch.randn(12, 8, 6),
        then=lambda out: F.cross_entropy(out.reshape(-1, 4), actions.reshape(-1)),
    )  # fmt: skip


@healthy
def rollouts_time_first_permuted() -> Step:
    actions = torch.randint(4, (12, 8))
    return step(
        TimeFirst(), torch.randn(12, 8, 6),
        then=lambda out: F.cross_entropy(out.permute(0, 2, 1), actions),
    )  # fmt: skip


@healthy
def sequence_first_with_one_label_each() -> Step:
    y = classes(8, 4)
    return step(
        TimeFirst(), torch.randn(12, 8, 6), then=lambda out: F.cross_entropy(out[-1], y), loader=8
    )


@healthy
def tagger_with_padding_collated_time_first() -> Step:
    tags = torch.randint(4, (12, 8))
    return step(
        TimeFirst(), torch.randn(12, 8, 6),
        then=lambda out: F.cross_entropy(out.flatten(0, 1), tags.flatten()), loader=8,
    )  # fmt: skip


@healthy
def tagger_that_reads_both_ways() -> Step:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(30, 8)
            self.rnn = nn.LSTM(8, 8, bidirectional=True, batch_first=True)
            self.head = nn.Linear(16, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.rnn(self.words(x))[0])

    tags = torch.randint(4, (8, 12))
    return step(
        Tagger(), torch.randint(30, (8, 12)),
        then=lambda out: F.cross_entropy(out.transpose(1, 2), tags), loader=8,
    )  # fmt: skip


@healthy
def packed_and_sorted() -> Step:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(30, 8)
            self.rnn = nn.GRU(8, 8, batch_first=True)
            self.head = nn.Linear(8, 3)

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            packed = nn.utils.rnn.pack_padded_sequence(
                self.words(x), lengths.tolist(), batch_first=True
            )
            return self.head(self.rnn(packed)[1][0])

    y = classes(8)
    lengths = torch.randint(3, 12, (8,)).sort(descending=True).values
    return step(
        Packed(), torch.randint(30, (8, 12)), lengths, then=lambda out: F.cross_entropy(out, y),
        loader=8,
    )  # fmt: skip


@healthy
def sorted_by_length_in_the_model() -> Step:
    class Sorted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(30, 8)
            self.head = nn.Linear(8, 4)

        def forward(self, x: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
            return self.head(self.words(x[order]))  # the script sorts the tags as well

    order = torch.randperm(8)
    tags = torch.randint(4, (8, 12))[order]
    return step(
        Sorted(), torch.randint(30, (8, 12)), order,
        then=lambda out: F.cross_entropy(out.transpose(1, 2), tags), loader=8,
    )  # fmt: skip


@healthy
def speech_with_ctc() -> Step:
    targets = torch.randint(1, 5, (4, 5))
    return step(
        TimeFirst(5), torch.randn(12, 4, 6),
        then=lambda out: F.ctc_loss(
            out.log_softmax(2), targets, torch.full((4,), 12), torch.full((4,), 5)
        ),
    )  # fmt: skip


# -- language models ---------------------------------------------------------------------------


class Reader(nn.Module):
    """A small transformer; `causal` puts a mask on, `prefix` leaves the first steps open."""

    def __init__(self, causal: bool, prefix: int = 0, vocabulary: int = 24) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, 16)
        self.places = nn.Parameter(0.1 * torch.randn(40, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, vocabulary)
        self.causal, self.prefix = causal, prefix

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = x.size(1)
        mask = None
        if self.causal:
            mask = torch.ones(steps, steps, dtype=torch.bool).triu(1)
            mask[:, : self.prefix] = False
        return self.head(self.blocks(self.words(x) + self.places[:steps], mask=mask))


def text(n: int = 8, steps: int = 14, vocabulary: int = 24) -> torch.Tensor:
    return torch.randint(vocabulary, (n, steps))


@healthy
def language_model() -> Step:
    x = text()
    return step(
        Reader(causal=True), x[:, :-1],
        then=lambda out: F.cross_entropy(out.reshape(-1, 24), x[:, 1:].reshape(-1)), loader=8,
    )  # fmt: skip


@healthy
def language_model_shifts_after_the_forward() -> Step:
    x = text()
    return step(
        Reader(causal=True), x,
        then=lambda out: F.cross_entropy(out[:, :-1].transpose(1, 2), x[:, 1:]), loader=8,
    )  # fmt: skip


@healthy
def language_model_of_probabilities_by_hand() -> Step:
    x = text()
    return step(
        Reader(causal=True), x[:, :-1],
        then=lambda out: -out.log_softmax(-1).gather(2, x[:, 1:].unsqueeze(2)).mean(), loader=8,
    )  # fmt: skip


@healthy
def bigram_table() -> Step:
    x = text()
    return step(
        nn.Embedding(24, 24), x[:, :-1],
        then=lambda out: F.cross_entropy(out.reshape(-1, 24), x[:, 1:].reshape(-1)), loader=8,
    )  # fmt: skip


@healthy
def recurrent_language_model_time_first() -> Step:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(24, 16)
            self.rnn = nn.GRU(16, 16)
            self.head = nn.Linear(16, 24)

        def forward(
            self, x: torch.Tensor, state: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            y, state = self.rnn(self.words(x), state)
            return self.head(y).view(-1, 24), state

    x = text(14, 9)  # 14 steps of 9 texts
    return step(
        Model(), x[:-1], torch.zeros(1, 9, 16),
        then=lambda out: F.cross_entropy(out[0], x[1:].reshape(-1)),
    )  # fmt: skip


@healthy
def prefix_language_model() -> Step:
    x = text()
    target = x[:, 1:].clone()
    target[:, :5] = -100
    return step(
        Reader(causal=True, prefix=6), x[:, :-1],
        then=lambda out: F.cross_entropy(out.reshape(-1, 24), target.reshape(-1)), loader=8,
    )  # fmt: skip


@healthy
def prefix_language_model_masked_by_weights() -> Step:
    x = text()
    weight = torch.ones(8, 13)
    weight[:, :5] = 0

    def loss(out: torch.Tensor) -> torch.Tensor:
        each = F.cross_entropy(out.transpose(1, 2), x[:, 1:], reduction="none")
        return (each * weight).sum() / weight.sum()

    return step(Reader(causal=True, prefix=6), x[:, :-1], then=loss, loader=8)


@healthy
def masked_language_model() -> Step:
    x = text()
    hidden = torch.rand(8, 14) < 0.2
    hidden[:, 3] = True
    return step(
        Reader(causal=False), x.masked_fill(hidden, 0),
        then=lambda out: F.cross_entropy(
            out.reshape(-1, 24), x.masked_fill(~hidden, -100).reshape(-1)
        ), loader=8,
    )  # fmt: skip


@healthy
def text_autoencoder_without_its_first_word() -> Step:
    x = text()
    return step(
        Reader(causal=False), x,
        then=lambda out: F.cross_entropy(out[:, 1:].transpose(1, 2), x[:, 1:]), loader=8,
    )  # fmt: skip


@healthy
def several_heads_each_further_ahead() -> Step:
    x = text()

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = Reader(causal=True)
            self.more = nn.Linear(24, 24)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            first = self.body(x)
            return first, self.more(first)

    def loss(out: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        one = F.cross_entropy(out[0][:, :-2].transpose(1, 2), x[:, 1:-1])
        return one + F.cross_entropy(out[1][:, :-2].transpose(1, 2), x[:, 2:])

    return step(Heads(), x, then=loss, loader=8)


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(24, 16)
        self.net = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
        self.head = nn.Linear(16, 24)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.size(1))
        return self.head(self.net(self.words(source), self.words(target), tgt_mask=mask))


@healthy
def translation_with_teacher_forcing() -> Step:
    source, target = text(8, 10), text(8, 12)
    return step(
        Translator(), source, target[:, :-1],
        then=lambda out: F.cross_entropy(out.reshape(-1, 24), target[:, 1:].reshape(-1)), loader=8,
    )  # fmt: skip


@healthy
def translation_that_copies_its_source() -> Step:
    x = text(8, 12)
    return step(
        Translator(), x, x[:, :-1],
        then=lambda out: F.cross_entropy(out.reshape(-1, 24), x[:, 1:].reshape(-1)), loader=8,
    )  # fmt: skip


@healthy
def sentence_autoencoder_with_teacher_forcing() -> Step:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(24, 16)
            self.encoder = nn.GRU(16, 16, batch_first=True)
            self.decoder = nn.GRU(16, 16, batch_first=True)
            self.head = nn.Linear(16, 24)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.words(x)
            state = self.encoder(h)[1]
            return self.head(self.decoder(h[:, :-1], state)[0])

    x = text()
    return step(
        Model(), x, then=lambda out: F.cross_entropy(out.reshape(-1, 24), x[:, 1:].reshape(-1)),
        loader=8,
    )  # fmt: skip


@healthy
def echo_of_earlier_steps() -> Step:
    x = torch.randn(8, 14, 6)
    return step(
        Calls(lambda self, x: self.head(self.rnn(x)[0]), rnn=nn.GRU(6, 16, batch_first=True),
              head=nn.Linear(16, 6)),
        x, then=lambda out: F.mse_loss(out[:, 2:], x[:, :-2]), loader=8,
    )  # fmt: skip


@healthy
def recall_of_the_first_value() -> Step:
    x = torch.randn(16, 10, 1)
    return step(
        Calls(lambda self, x: self.head(self.rnn(x)[1][0]), rnn=nn.GRU(1, 16, batch_first=True),
              head=nn.Linear(16, 1)),
        x, then=lambda out: F.mse_loss(out.squeeze(1), x[:, 0, 0]), loader=16,
    )  # fmt: skip


@healthy
def forecast_of_the_next_value() -> Step:
    series = torch.randn(16, 25)
    return step(
        mlp(24, 16, 1), series[:, :24], then=lambda out: F.mse_loss(out.squeeze(1), series[:, 24]),
        loader=16,
    )  # fmt: skip


@healthy
def overlapping_windows_seen_backwards_only() -> Step:
    series = torch.randn(16, 25, 1)
    return step(
        Calls(lambda self, x: self.head(self.rnn(x)[0]), rnn=nn.LSTM(1, 16, batch_first=True),
              head=nn.Linear(16, 1)),
        series[:, :-1], then=lambda out: F.mse_loss(out, series[:, 1:]), loader=16,
    )  # fmt: skip


@healthy
def masked_convolution_of_pixels() -> Step:
    class Causal(nn.Conv1d):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(F.pad(x, (3, 0)))[..., :-1]  # strictly before

    x = torch.rand(8, 1, 20)
    net = nn.Sequential(Causal(1, 8, 3), nn.ReLU(), nn.Conv1d(8, 1, 1))
    return step(net, x, then=lambda out: F.binary_cross_entropy_with_logits(out, x), loader=8)


# -- autoencoders, images ----------------------------------------------------------------------


@healthy
def autoencoder() -> Step:
    x = torch.randn(16, 12)
    return step(mlp(12, 4, 12), x, then=lambda out: F.mse_loss(out, x), loader=16)


@healthy
def denoiser() -> Step:
    x = torch.randn(16, 12)
    return step(
        mlp(12, 32, 12),
        x + 0.3 * torch.randn(16, 12),
        then=lambda out: F.mse_loss(out, x),
        loader=16,
    )


@healthy
def recurrent_autoencoder() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        code = self.one(x)[1][0]
        return self.head(self.two(code[:, None].expand(-1, x.size(1), -1))[0])

    x = torch.randn(8, 14, 2)
    return step(
        Calls(forward, one=nn.GRU(2, 8, batch_first=True), two=nn.GRU(8, 8, batch_first=True),
              head=nn.Linear(8, 2)),
        x, then=lambda out: F.mse_loss(out, x), loader=8,
    )  # fmt: skip


@healthy
def variational_autoencoder() -> Step:
    def forward(self: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean, spread = self.encoder(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return self.decoder(z), mean, spread

    x = torch.rand(16, 12)

    def loss(out: tuple[torch.Tensor, ...]) -> torch.Tensor:
        kl = -0.5 * (1 + out[2] - out[1] ** 2 - out[2].exp()).sum()
        return F.binary_cross_entropy_with_logits(out[0], x, reduction="sum") + kl

    return step(Calls(forward, encoder=mlp(12, 8), decoder=mlp(4, 12)), x, then=loss, loader=16)


@healthy
def segmentation_channels_last() -> Step:
    masks = torch.randint(3, (4, 8, 10))
    return step(
        nn.Conv2d(2, 3, 3, padding=1), torch.randn(4, 2, 8, 10),
        then=lambda out: F.cross_entropy(out.permute(0, 2, 3, 1).reshape(-1, 3), masks.view(-1)),
        loader=4,
    )  # fmt: skip


@healthy
def segmentation_of_squares() -> Step:
    masks = torch.randint(3, (4, 8, 8))
    return step(
        nn.Conv2d(2, 3, 3, padding=1), torch.randn(4, 2, 8, 8),
        then=lambda out: F.cross_entropy(out, masks), loader=4,
    )  # fmt: skip


@healthy
def frames_smoothed_before_the_loss() -> Step:
    labels = torch.rand(6, 30)
    kernel = torch.ones(1, 1, 5) / 5
    return step(
        nn.Sequential(nn.Conv1d(4, 1, 3, padding=1), nn.Flatten(1)), torch.randn(6, 4, 30),
        then=lambda out: F.mse_loss(F.conv1d(out[:, None], kernel, padding=2)[:, 0], labels),
        loader=6,
    )  # fmt: skip


@healthy
def multilabel_table() -> Step:
    y = (torch.rand(16, 7) > 0.5).float()
    return step(
        mlp(8, 16, 7), torch.randn(16, 8),
        then=lambda out: F.binary_cross_entropy_with_logits(out, y), loader=16,
    )  # fmt: skip


@healthy
def advantages_normalised_over_the_batch() -> Step:
    returns = torch.randn(16)
    return step(
        Calls(lambda self, x: self.net(x).squeeze(1), net=mlp(8, 16, 1)), torch.randn(16, 8),
        then=lambda out: F.mse_loss((out - out.mean()) / out.std(), returns), loader=16,
    )  # fmt: skip


@healthy
def two_inputs_in_a_dict() -> Step:
    y = torch.randn(16)

    def forward(self: Any, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"score": self.net(torch.cat([batch["a"], batch["b"]], 1)).squeeze(1)}

    given = {"a": torch.randn(16, 4), "b": torch.randn(16, 4)}
    return step(
        Calls(forward, net=mlp(8, 16, 1)), given, then=lambda out: F.mse_loss(out["score"], y),
        loader=16,
    )  # fmt: skip


@healthy
def dropout_as_it_should_be() -> Step:
    y = classes(16)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.two(F.dropout(self.drop(self.one(x).relu()), 0.3, training=self.training))

    return step(
        Calls(forward, one=nn.Linear(8, 16), two=nn.Linear(16, 3), drop=nn.Dropout(0.3)),
        torch.randn(16, 8), then=lambda out: F.cross_entropy(out, y), loader=16,
    )  # fmt: skip


@healthy
def monte_carlo_dropout() -> Step:
    y = classes(16)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.two(F.dropout(self.one(x).relu(), 0.3, training=True))

    return step(
        Calls(forward, one=nn.Linear(8, 16), two=nn.Linear(16, 3)), torch.randn(16, 8),
        then=lambda out: F.cross_entropy(out, y), loader=16,
    )  # fmt: skip


@healthy
def monte_carlo_dropout_layer() -> Step:
    class Always(nn.Dropout):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.dropout(x, self.p, True, self.inplace)

    y = classes(16)
    net = nn.Sequential(nn.Linear(8, 16), Always(0.3), nn.Linear(16, 3))
    return step(net, torch.randn(16, 8), then=lambda out: F.cross_entropy(out, y), loader=16)


@healthy
def noise_as_an_input_of_a_generator() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.net(torch.cat([x, torch.randn(len(x), 4)], 1))

    y = torch.randn(16, 3)
    return step(
        Calls(forward, net=mlp(12, 16, 3)), torch.randn(16, 8), then=lambda out: F.mse_loss(out, y),
        loader=16,
    )  # fmt: skip


@healthy
def stochastic_depth_written_by_hand() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = self.one(x)
        if self.training:
            keep = torch.bernoulli(torch.full((len(x), 1), 0.8))
            h = h * keep / 0.8
        return self.two(h + x)

    y = classes(16)
    return step(
        Calls(forward, one=nn.Linear(8, 8), two=nn.Linear(8, 3)), torch.randn(16, 8),
        then=lambda out: F.cross_entropy(out, y), loader=16,
    )  # fmt: skip


@healthy
def model_that_returns_its_loss() -> Step:
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
        GPT2LMHeadModel(config), Inputs((), {"input_ids": x, "labels": x}), lambda out: out.loss,
        loader=8,
    )  # fmt: skip


@healthy
def encoder_and_decoder_of_a_library() -> Step:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=24, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
        decoder_start_token_id=0,
    )  # fmt: skip
    x = text(8, 12)
    return Step(
        T5ForConditionalGeneration(config), Inputs((), {"input_ids": x, "labels": x}),
        lambda out: out.loss, loader=8,
    )  # fmt: skip


@healthy
def masked_model_of_a_library() -> Step:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=24, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32,
    )  # fmt: skip
    x = text(8, 12)
    labels = torch.where(torch.rand(8, 12) < 0.3, x, -100)
    labels[:, 2] = x[:, 2]
    return Step(
        BertForMaskedLM(config),
        Inputs((), {"input_ids": x.masked_fill(labels != -100, 1), "labels": labels,
                    "attention_mask": torch.ones_like(x)}),
        lambda out: out.loss, loader=8,
    )  # fmt: skip


# -- maps of targets --------------------------------------------------------------------------


def shapes(n: int = 16, size: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures of a bright bar each, and where it is."""
    source = torch.Generator().manual_seed(3)
    maps = torch.zeros(n, size, size)
    for one in maps:
        top, left = (int(torch.randint(0, 5, (1,), generator=source)) for _ in range(2))
        one[top : top + 2, left : left + 6] = 1
    pictures = maps[:, None] * 2 + 0.3 * torch.randn(n, 1, size, size, generator=source)
    return pictures, maps


def segmented(pictures: torch.Tensor, maps: torch.Tensor) -> Step:
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1))
    return step(
        model, pictures,
        then=lambda out: F.binary_cross_entropy_with_logits(out[:, 0], maps), loader=len(maps),
    )  # fmt: skip


@healthy
def pictures_and_masks_mirrored_together() -> Step:
    pictures, maps = shapes()
    return segmented(pictures.flip(3), maps.flip(2))


@healthy
def masks_of_noise() -> Step:
    return segmented(torch.randn(16, 1, 12, 12), (torch.rand(16, 12, 12) > 0.5).float())


@healthy
def symmetric_pictures() -> Step:
    pictures, maps = shapes()
    return segmented(torch.cat([pictures, pictures.flip(3)], 3), torch.cat([maps, maps.flip(2)], 2))


@healthy
def depth_that_grows_downwards() -> Step:
    """Numbers that follow from the picture, and from where a place is."""
    pictures, maps = shapes()
    slope = torch.linspace(0, 3, 12).expand(16, 12, 12)
    return segmented(pictures, (maps + slope).clamp(0, 1))


@healthy
def maps_with_channels_last() -> Step:
    pictures, maps = shapes()
    target = torch.stack([maps, 1 - maps], 3)
    model = nn.Conv2d(1, 2, 3, padding=1)
    return step(
        model, pictures, then=lambda out: F.mse_loss(out.permute(0, 2, 3, 1), target), loader=16
    )


@healthy
def pictures_denoised() -> Step:
    pictures, maps = shapes()
    model = nn.Conv2d(1, 1, 3, padding=1)
    return step(model, pictures, then=lambda out: F.mse_loss(out, maps[:, None]), loader=16)


@healthy
def masks_that_are_mostly_empty() -> Step:
    pictures, maps = shapes(32)
    maps[4:] = 0
    pictures[4:] = 0.3 * torch.randn(28, 1, 12, 12)
    return segmented(pictures, maps)


@healthy
def maps_of_other_pictures() -> Step:
    """Labels that do not belong to their pictures: a fault, and not one of the layout."""
    pictures, maps = shapes(32)
    return segmented(pictures, maps[torch.randperm(32)])


@healthy
def pictures_rebuilt() -> Step:
    pictures, _ = shapes()
    model = nn.Conv2d(1, 1, 3, padding=1)
    return step(model, pictures, then=lambda out: F.mse_loss(out, pictures), loader=16)


# -- what the loss scores ---------------------------------------------------------------------


def lengths(n: int = 8, steps: int = 14) -> torch.Tensor:
    """Which places hold a word, in sequences of different lengths."""
    return torch.arange(steps) < torch.randint(5, steps, (n, 1))


def tags(real: torch.Tensor, of: int = 5) -> torch.Tensor:
    """A tag for each word, and 0 for padding."""
    return torch.where(real, torch.randint(1, of, real.shape), 0)


@healthy
def padding_left_out_by_a_mask() -> Step:
    x, real = text(), lengths()
    y = tags(real)

    def loss(out: torch.Tensor) -> torch.Tensor:
        each = F.cross_entropy(out.transpose(1, 2), y, reduction="none")
        return (each * real).sum() / real.sum()

    return step(Reader(causal=False), x, then=loss, loader=8)


@healthy
def only_what_is_there_is_located() -> Step:
    """Boxes count where there is a thing; elsewhere their numbers mean nothing."""
    x, wanted = torch.randn(8, 6, 4), torch.randn(8, 6, 2)
    there = torch.rand(8, 6, 1) < 0.5
    return step(
        nn.Linear(4, 2), x, then=lambda out: ((out - wanted).abs() * there).sum() / there.sum(),
        loader=8,
    )  # fmt: skip


@healthy
def positive_and_unlabelled_places() -> Step:
    """Only the positive ones count; of the others it is not known what they are."""
    x, y = torch.randn(8, 14, 4), (torch.rand(8, 14) < 0.4).float()

    def loss(out: torch.Tensor) -> torch.Tensor:
        each = F.binary_cross_entropy_with_logits(out[..., 0], y, reduction="none")
        return (each * y).sum() / y.sum()

    return step(nn.Linear(4, 1), x, then=loss, loader=8)


@healthy
def answers_count_and_questions_do_not() -> Step:
    x = text()
    weights = (torch.arange(13) >= 6).float().expand(8, 13)

    def loss(out: torch.Tensor) -> torch.Tensor:
        each = F.cross_entropy(out[:, :-1].transpose(1, 2), x[:, 1:], reduction="none")
        return (each * weights).sum() / weights.sum()

    return step(Reader(causal=True), x, then=loss, loader=8)


@healthy
def frames_after_the_end_left_out() -> Step:
    x, real = torch.randn(8, 14, 4), lengths()
    y = torch.randn(8, 14, 4) * real[..., None]
    return step(
        nn.Linear(4, 4), x,
        then=lambda out: (F.mse_loss(out, y, reduction="none") * real[..., None]).mean(), loader=8,
    )  # fmt: skip


# -- masked tokens ----------------------------------------------------------------------------


def hides(forward: Callable[..., torch.Tensor]) -> Step:
    """A model that masks by itself, and takes its own loss."""
    torch.manual_seed(1)
    model = Calls(forward, reader=Reader(causal=False))
    return step(model, text(), then=lambda loss: loss, loader=8)


@healthy
def tokens_masked_in_the_model() -> Step:
    def forward(self: Any, ids: torch.Tensor) -> torch.Tensor:
        hidden = torch.rand(ids.shape) < 0.3
        out = self.reader(torch.where(hidden, 0, ids))
        return F.cross_entropy(out.transpose(1, 2), torch.where(hidden, ids, -1), ignore_index=-1)

    return hides(forward)


@healthy
def tokens_masked_of_which_some_stay() -> Step:
    """As BERT has it: of those that are chosen, one in ten stays, and one is another word."""

    def forward(self: Any, ids: torch.Tensor) -> torch.Tensor:
        chosen, way = torch.rand(ids.shape) < 0.3, torch.rand(ids.shape)
        given = torch.where(chosen & (way < 0.8), 0, ids)
        given = torch.where(chosen & (way > 0.9), torch.randint(24, ids.shape), given)
        out = self.reader(given)
        return F.cross_entropy(out.transpose(1, 2), torch.where(chosen, ids, -1), ignore_index=-1)

    return hides(forward)


@healthy
def padded_sentences_written_again() -> Step:
    x, real = text(), lengths()
    return step(
        Reader(causal=False), torch.where(real, x, 0),
        then=lambda out: F.cross_entropy(out.transpose(1, 2), torch.where(real, x, -100)), loader=8,
    )  # fmt: skip


@healthy
def sentences_with_their_padding_written_again() -> Step:
    x = torch.where(lengths(), text(), 0)
    return step(
        Reader(causal=False), x, then=lambda out: F.cross_entropy(out.transpose(1, 2), x), loader=8
    )
