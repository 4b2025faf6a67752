"""Networks whose inner workings are known, because their weights were written down or trained here.

`induction`, `cancellation` and `modular_addition` are compiled: every number in them follows from
arithmetic. `trained_induction` and `trained_addition` learned the same tasks; the weights of the
first are kept in `trained_induction.safetensors`, which `python -m tests.interp.compiled_networks`
makes again.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

WEIGHTS = Path(__file__).with_name("trained_induction.safetensors")
VOCABULARY, LENGTH, BETA, HEADS = 12, 8, 12.0, 3  # of the compiled network; token 0 begins a text
TRAINED_VOCABULARY, TRAINED_LENGTH, TRAINED_WIDTH = 24, 22, 48


class Attention(nn.Module):
    """Causal attention; its scores are not scaled."""

    def __init__(self, width: int, heads: int, size: int, scale: float | None = 1.0) -> None:
        super().__init__()
        self.heads, self.scale = heads, scale
        self.q, self.k, self.v = (nn.Linear(width, heads * size, bias=False) for _ in range(3))
        self.o = nn.Linear(heads * size, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, T, size)
            for part in (self.q, self.k, self.v)
        )
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale)
        mixed: torch.Tensor = self.o(z.transpose(1, 2).flatten(-2))
        return mixed


class Block(nn.Module):
    """`x + attention(x)`, without a norm."""

    def __init__(self, width: int, heads: int, size: int, scale: float | None = 1.0) -> None:
        super().__init__()
        self.attention = Attention(width, heads, size, scale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed: torch.Tensor = x + self.attention(x)
        return mixed


class Transformer(nn.Module):
    """Tokens and positions, blocks of attention, logits."""

    def __init__(
        self, vocabulary: int, length: int, width: int, heads: int, size: int,
        scale: float | None = 1.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.1)
        self.blocks = nn.ModuleList(Block(width, heads, size, scale) for _ in range(2))
        self.unembed = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens) + self.places[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.unembed(x)
        return logits


# -- compiled -------------------------------------------------------------------------------------


@torch.no_grad()
def induction(junk: int = 4) -> Transformer:
    """Head 0 of layer 0 finds the previous token, head 0 of layer 1 completes `A B … A` with B.

    The residual stream holds token, position, previous token, output and junk, side by side. Head
    1 of each layer is random and writes to the junk, head 2 is zero.
    """
    v, t = VOCABULARY, LENGTH
    width, size = 3 * v + t + junk, max(v, t)
    token, place = torch.arange(v), v + torch.arange(t)
    previous, out = v + t + torch.arange(v), 2 * v + t + torch.arange(v)
    random = torch.Generator().manual_seed(0)
    model = Transformer(v, t, width, HEADS, size)
    for parameter in model.parameters():
        parameter.zero_()
    model.embed.weight[token, token] = 1.0
    model.places[torch.arange(t), place] = 1.0
    model.unembed.weight[token, out] = 1.0
    first, second = (block.attention for block in model.blocks)
    rows = torch.arange(t)
    first.q.weight[rows, place] = BETA  # position i …
    first.k.weight[rows[1:], place[:-1]] = 1.0  # … looks at position j + 1 = i
    second.q.weight[token, token] = BETA  # token A …
    second.k.weight[token, previous] = 1.0  # … looks at what came after an A
    for attention, written in ((first, previous), (second, out)):
        attention.v.weight[token, token] = 1.0
        attention.o.weight[written, token] = 1.0
        head = slice(size, 2 * size)
        for part in (attention.q, attention.k, attention.v):
            part.weight[head] = torch.randn(size, width, generator=random) / math.sqrt(width)
        attention.o.weight[-junk:, head] = torch.randn(junk, size, generator=random)
    return model.eval()


def repeats(count: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts `0 … A B … A` of the compiled network, in which nothing else repeats; and each B."""
    random = torch.Generator().manual_seed(seed)
    texts = torch.zeros(count, LENGTH, dtype=torch.long)
    answers = torch.zeros(count, dtype=torch.long)
    for row in range(count):
        texts[row, 1:-1] = 1 + torch.randperm(VOCABULARY - 1, generator=random)[: LENGTH - 2]
        where = int(torch.randint(1, LENGTH - 2, (), generator=random))
        texts[row, -1] = texts[row, where]
        answers[row] = texts[row, where + 1]
    return texts, answers


class Cancellation(nn.Module):
    """M = n - n² / 2: n is read directly and through a quadratic layer, and both cancel at 1."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(1, 1, bias=False)
        self.square = _Square()
        nn.init.ones_(self.stem.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = self.stem(x)
        metric: torch.Tensor = n + self.square(n)
        return metric


class _Square(nn.Module):
    def forward(self, n: torch.Tensor) -> torch.Tensor:
        return -(n**2) / 2


class ModularAddition(nn.Module):
    """One hidden layer of squares: 9 units per frequency; the logits have a closed form."""

    def __init__(self, p: int, frequencies: tuple[int, ...]) -> None:
        super().__init__()
        phases = 2 * math.pi * torch.arange(3, dtype=torch.float64) / 3
        i, j = (phase.flatten() for phase in torch.meshgrid(phases, phases, indexing="ij"))
        angle = 2 * math.pi * torch.arange(p, dtype=torch.float64) / p
        self.p, self.frequencies = p, frequencies
        self.left, self.right = (nn.Embedding(p, 9 * len(frequencies)) for _ in range(2))
        self.square = _Power()
        self.out = nn.Linear(9 * len(frequencies), p, bias=False)
        self.double()
        with torch.no_grad():
            for index, s in enumerate(frequencies):
                units = slice(9 * index, 9 * index + 9)
                self.left.weight[:, units] = torch.cos(s * angle[:, None] + i)
                self.right.weight[:, units] = torch.cos(s * angle[:, None] + j)
                self.out.weight[:, units] = torch.cos(s * angle[:, None] + i + j)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.square(self.left(a) + self.right(b)))
        return logits

    def closed_form(
        self, a: torch.Tensor, b: torch.Tensor, without: tuple[int, ...] = ()
    ) -> torch.Tensor:
        """The logits by arithmetic: 4.5 Σ_s cos(2π s (a + b − c) / p), without some frequencies."""
        c = torch.arange(self.p)
        turn = 2 * math.pi * (a[:, None] + b[:, None] - c).double() / self.p
        kept = [s for s in self.frequencies if s not in without]
        total = sum((torch.cos(s * turn) for s in kept), torch.zeros(len(a), self.p))
        return 4.5 * total


class _Power(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x**2


# -- trained --------------------------------------------------------------------------------------


def repeated_texts(count: int, length: int = 8, seed: int = 1) -> torch.Tensor:
    """Texts of random tokens, each repeated once: (count, 2 length)."""
    random = torch.Generator().manual_seed(seed)
    return torch.randint(TRAINED_VOCABULARY, (count, length), generator=random).repeat(1, 2)


def train_induction(seed: int = 0, steps: int = 2000) -> Transformer:
    """Trains two layers with one head each to repeat what they saw."""
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    size = TRAINED_WIDTH
    model = Transformer(TRAINED_VOCABULARY, TRAINED_LENGTH, TRAINED_WIDTH, 1, size, scale=None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(steps):
        length = int(torch.randint(6, 12, (), generator=random))
        texts = repeated_texts(64, length, seed=100_000 * (seed + 1) + step)
        logits = model(texts[:, :-1])[:, length:]
        loss = F.cross_entropy(logits.flatten(0, 1), texts[:, length + 1 :].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def trained_induction() -> Transformer:
    """The trained network, from its file."""
    model = Transformer(TRAINED_VOCABULARY, TRAINED_LENGTH, TRAINED_WIDTH, 1, TRAINED_WIDTH, None)
    model.load_state_dict(load_file(WEIGHTS))
    return model.eval()


class AdditionMLP(nn.Module):
    """Modular addition with trained weights: one hidden layer of squares."""

    def __init__(self, p: int, width: int) -> None:
        super().__init__()
        self.left, self.right = (nn.Embedding(p, width) for _ in range(2))
        self.square = _Power()
        self.out = nn.Linear(width, p, bias=False)
        for table in (self.left, self.right):
            nn.init.normal_(table.weight, std=0.085)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.square(self.left(a) + self.right(b)))
        return logits


@functools.cache
def trained_addition(p: int = 23, steps: int = 400) -> tuple[AdditionMLP, float]:
    """A network that has learned a + b modulo p from 60 % of the pairs; accuracy on the others."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        model = AdditionMLP(p, 128)
        pairs = torch.cartesian_prod(torch.arange(p), torch.arange(p))[torch.randperm(p * p)]
    seen = int(0.6 * len(pairs))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1.0)
    for _ in range(steps):
        a, b = pairs[:seen].T
        optimizer.zero_grad()
        F.mse_loss(model(a, b), F.one_hot((a + b) % p, p).float()).backward()
        optimizer.step()
    a, b = pairs[seen:].T
    with torch.no_grad():
        right = (model(a, b).argmax(-1) == (a + b) % p).double().mean()
    return model.eval(), float(right)


if __name__ == "__main__":
    torch.set_num_threads(1)
    save_file(train_induction().state_dict(), WEIGHTS)
