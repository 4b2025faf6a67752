"""Healthy steps on padded sequences, with masks, in any order, and from loaders of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    SequentialSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

from nethook.examining.batch_facts import LoaderFacts, loader_facts
from nethook.torch_private import collates, dataset_of_loader, sampler_of_loader
from tests.examining.experiments.healthy import classes, healthy, mlp
from tests.examining.experiments.steps import Calls, Step, step

N, WIDTH, VOCAB, DIM = 16, 20, 30, 16
Forward = Callable[..., Any]


def words() -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens with zeros behind them, and how many are no zeros."""
    length = torch.randint(4, 15, (N,))
    tokens = torch.randint(5, VOCAB, (N, WIDTH))
    return tokens.masked_fill(torch.arange(WIDTH) >= length[:, None], 0), length


def of(forward: Forward, *given: torch.Tensor, **parts: nn.Module) -> Step:
    """A classifier of sequences."""
    parts = {"embed": nn.Embedding(VOCAB, DIM), "out": nn.Linear(DIM, 3), **parts}
    y = classes(N)
    return step(Calls(forward, **parts), *given, then=lambda out: F.cross_entropy(out, y), loader=N)


# -- a mask that is given, and where it counts --------------------------------------------------


@healthy
def mask_weighs_the_mean() -> Step:
    x, _ = words()

    def forward(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.out((self.embed(x) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))

    return of(forward, x, (x != 0).float())


@healthy
def mask_of_an_attention() -> Step:
    x, _ = words()

    def forward(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        h = self.embed(x)
        return self.out(self.attention(h, h, h, key_padding_mask=mask)[0][:, 0])

    attention = nn.MultiheadAttention(DIM, 2, batch_first=True)
    return of(forward, x, x == 0, attention=attention)


@healthy
def mask_tells_lengths() -> Step:
    x, _ = words()

    def forward(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        length = mask.sum(1)
        rows = pack_padded_sequence(self.embed(x), length, batch_first=True, enforce_sorted=False)
        return self.out(self.rnn(rows)[1][0])

    return of(forward, x, (x != 0).long(), rnn=nn.GRU(DIM, DIM, batch_first=True))


@healthy
def mask_of_the_largest() -> Step:
    x, _ = words()

    def forward(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.out(self.embed(x).masked_fill(~mask[..., None], -9.0).amax(1))

    return of(forward, x, x != 0)


@healthy
def mask_is_for_the_loss_alone() -> Step:
    """Tags of words: what is said of padding is left out of the model's own loss."""
    x, _ = words()

    def forward(
        self: Any, x: torch.Tensor, mask: torch.Tensor, tags: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        logits = self.out(self.embed(x))
        each = F.cross_entropy(logits.transpose(1, 2), tags, reduction="none")
        return {"loss": (each * mask).sum() / mask.sum(), "logits": logits}

    model = Calls(forward, embed=nn.Embedding(VOCAB, DIM), out=nn.Linear(DIM, 3))
    tags = torch.randint(3, (N, WIDTH))
    return step(model, x, (x != 0).float(), tags, then=lambda out: out["loss"], loader=N)


@healthy
def tags_of_a_decoder_with_its_mask_for_the_loss() -> Step:
    """As before, by a network that looks back only: the words never see what is behind them."""
    x, _ = words()

    def forward(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.out(self.rnn(self.embed(x))[0])

    real, tags = x != 0, torch.randint(3, (N, WIDTH))
    parts = {"embed": nn.Embedding(VOCAB, DIM), "out": nn.Linear(DIM, 3)}
    model = Calls(forward, rnn=nn.GRU(DIM, DIM, batch_first=True), **parts)
    return step(model, x, real, then=lambda out: F.cross_entropy(out[real], tags[real]), loader=N)


@healthy
def mask_that_the_model_makes_itself() -> Step:
    """It takes a mask because its callers have one, and finds padding by its number."""
    x, _ = words()

    def forward(self: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        real = (x != 0)[..., None]
        return self.out((self.embed(x) * real).sum(1) / real.sum(1))

    return of(forward, x, (x != 0).float())


@healthy
def padding_whose_embedding_is_zero() -> Step:
    """A sum over all words, to which padding adds nothing: its mask is not needed."""
    x, _ = words()
    return of(
        lambda self, x, mask: self.out(self.embed(x).sum(1)), x, x != 0,
        embed=nn.Embedding(VOCAB, DIM, padding_idx=0),
    )  # fmt: skip


@healthy
def a_weight_for_each_place() -> Step:
    """A table of a fixed width, in which a zero says that there is nothing: asked, no fault."""
    x, _ = words()
    return of(
        lambda self, x, mask: self.out(self.embed(x).flatten(1)), x, x != 0,
        out=nn.Linear(WIDTH * DIM, 3),
    )  # fmt: skip


# -- padding that nobody marks ------------------------------------------------------------------


@healthy
def bag_of_words_with_padding_left_out() -> Step:
    x, _ = words()
    bag = nn.EmbeddingBag(VOCAB, DIM, padding_idx=0)
    return of(lambda self, x: self.out(self.bag(x)), x, bag=bag)


@healthy
def last_word_by_its_length() -> Step:
    x, length = words()

    def forward(self: Any, x: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        return self.out(self.rnn(self.embed(x))[0][torch.arange(len(x)), length - 1])

    return of(forward, x, length, rnn=nn.GRU(DIM, DIM, batch_first=True))


@healthy
def padded_on_the_left() -> Step:
    """The last position is the last word of every sequence."""
    x, length = words()
    left = torch.stack([row.roll(WIDTH - int(n)) for row, n in zip(x, length, strict=True)])
    return of(lambda self, x: self.out(self.embed(x)[:, -1]), left)


@healthy
def several_padded_inputs() -> Step:
    """A question and a text: each in a mean of its own words."""

    def mean(self: Any, x: torch.Tensor) -> torch.Tensor:
        real = (x != 0)[..., None]
        return (self.embed(x) * real).sum(1) / real.sum(1)

    (one, _), (other, _) = words(), words()
    return of(lambda self, a, b: self.out(mean(self, a) * mean(self, b)), one, other)


@healthy
def whole_numbers_that_are_no_words() -> Step:
    """Columns of a table: many last columns are zero."""
    x, _ = words()
    return of(lambda self, x: self.out(self.net(x.float() / 10)), x, net=mlp(WIDTH, DIM, DIM))


# -- the order of steps -------------------------------------------------------------------------


def sentences() -> torch.Tensor:
    return torch.randint(VOCAB, (N, 8))


@healthy
def distances_count_and_directions_do_not() -> Step:
    """An attention that looks at what is near, on both sides alike."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h, place = self.embed(x), torch.arange(8.0)
        near = -(place[:, None] - place).abs()
        return self.out(F.scaled_dot_product_attention(h, h, h, attn_mask=near).mean(1))

    return of(forward, sentences())


@healthy
def sines_for_positions() -> Step:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        place = torch.arange(8.0)[:, None] / 10 ** torch.linspace(0, 2, DIM)
        h = self.embed(x) + place.sin()
        return self.out(self.attention(h, h, h)[0].mean(1))

    return of(forward, sentences(), attention=nn.MultiheadAttention(DIM, 2, batch_first=True))


@healthy
def steps_side_by_side() -> Step:
    return of(
        lambda self, x: self.out(self.embed(x).flatten(1)), sentences(), out=nn.Linear(8 * DIM, 3)
    )


@healthy
def read_both_ways_and_averaged() -> Step:
    rnn = nn.GRU(DIM, DIM // 2, batch_first=True, bidirectional=True)
    return of(lambda self, x: self.out(self.rnn(self.embed(x))[0].mean(1)), sentences(), rnn=rnn)


@healthy
def convolution_over_time() -> Step:
    conv = nn.Conv1d(DIM, DIM, 3)
    return of(
        lambda self, x: self.out(self.conv(self.embed(x).transpose(1, 2)).amax(2)), sentences(),
        conv=conv,
    )  # fmt: skip


@healthy
def bag_of_words() -> Step:
    """The order is not to matter: asked, no fault."""
    return of(lambda self, x: self.out(self.embed(x).mean(1)), sentences())


# -- loaders ------------------------------------------------------------------------------------


def facts_of_loader(loader: DataLoader[Any]) -> LoaderFacts:
    given = iter(loader)
    return loader_facts(sampler_of_loader(given), collates(given), dataset_of_loader(given))


def loaded(loader: DataLoader[Any]) -> Step:
    y = classes(8)
    return step(
        mlp(4, 3), torch.randn(8, 4), then=lambda out: F.cross_entropy(out, y),
        loader=facts_of_loader(loader),
    )  # fmt: skip


def rows(n: int = 70) -> Dataset[Any]:
    return TensorDataset(torch.randn(n, 4))


@healthy
def a_weight_for_each_sample() -> Step:
    return loaded(DataLoader(rows(), 8, sampler=WeightedRandomSampler(torch.rand(70), 70)))


@healthy
def samples_left_out_by_a_weight_of_zero() -> Step:
    weights = [1.0] * 10 + [0.0] * 60
    return loaded(DataLoader(rows(), 8, sampler=WeightedRandomSampler(weights, 70)))


@healthy
def weights_of_a_part_of_the_data() -> Step:
    part = Subset(rows(), list(range(12)))
    return loaded(DataLoader(part, 8, sampler=WeightedRandomSampler([1.0] * 12, 40)))


@healthy
def samples_in_order() -> Step:
    return loaded(DataLoader(rows(), 8))


@healthy
def a_few_draws_of_many_weights() -> Step:
    return loaded(DataLoader(rows(), 8, sampler=WeightedRandomSampler([1.0] * 70, 5)))


@healthy
def groups_are_drawn_and_not_samples() -> Step:
    """A batch is a group: its sampler has a weight for each of seven."""

    class Groups:
        def __init__(self) -> None:
            self.sampler = WeightedRandomSampler([1.0] * 7, 20)

        def __iter__(self) -> Iterator[list[int]]:
            for group in self.sampler:
                yield list(range(10 * group, 10 * group + 8))

    return loaded(DataLoader(rows(), batch_sampler=Groups()))  # type: ignore[arg-type]


@healthy
def buckets_of_equal_length() -> Step:
    """Batches that hold a sampler of buckets, in order."""

    class Buckets(BatchSampler):
        def __iter__(self) -> Iterator[list[int]]:
            for bucket in self.sampler:
                yield list(range(bucket * 8, bucket * 8 + 8))

    return loaded(DataLoader(rows(), batch_sampler=Buckets(SequentialSampler(range(8)), 8, False)))


@healthy
def classes_are_drawn_first() -> Step:
    """A weight for each class, and then a sample of that class."""

    class OfClasses(WeightedRandomSampler):
        def __iter__(self) -> Iterator[int]:
            for label in super().__iter__():
                yield label * 10 + int(torch.randint(10, ()))

    return loaded(DataLoader(rows(), 8, sampler=OfClasses([0.2, 0.8], 40)))
