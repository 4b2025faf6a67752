"""“Which head completes a pattern that it has seen before?” Found by cause, not by looks.

A small transformer learns to repeat random texts. Attribution patching ranks its heads, exact runs
confirm the ranking, and where the heads look shows what they do.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import nethook
from nethook import edits, interp

VOCABULARY, WIDTH, HEADS, LENGTH = 24, 48, 4, 8


class Block(nn.Module):
    """Adds what its heads read to the stream."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(z.transpose(1, 2).flatten(-2))  # type: ignore[no-any-return]


class Model(nn.Module):
    """Two blocks of attention between tokens and logits."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Parameter(torch.randn(2 * LENGTH, WIDTH) * 0.1)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.unembed = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, texts: Tensor) -> Tensor:  # noqa: D102
        x = self.tokens(texts) + self.places[: texts.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.unembed(x)  # type: ignore[no-any-return]


def repeated(rows: int) -> Tensor:
    """Random texts, each twice: the second half can be known from the first."""
    return torch.rand(rows, VOCABULARY).argsort(-1)[:, :LENGTH].repeat(1, 2)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range(160):
    texts = repeated(64)
    loss = F.cross_entropy(model(texts[:, :-1])[:, LENGTH:].mT, texts[:, LENGTH + 1 :])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss of the second half: {loss.item():.3f}")
# The source has another token where the answer stands in the first half.
base = repeated(32)[:, :-1]
source = base.clone()
source[:, LENGTH - 1] = (base[:, LENGTH - 1] + 1) % VOCABULARY
right, other = base[:, LENGTH - 1, None], source[:, LENGTH - 1, None]


def metric(out: Tensor) -> Tensor:
    """How much likelier the source's token is than the base's."""
    return (out[:, -1].gather(1, other) - out[:, -1].gather(1, right)).squeeze(1)


found = interp.attribute(model, base, source, at="blocks.*", over="heads", metric=metric)
print("share of the effect, estimated:")
for layer, row in enumerate(found.recovered.mean(-1).tolist()):
    print(f"  layer {layer}  " + "  ".join(f"{share:+.2f}" for share in row))
print(f"runs: {found.runs}; rank agreement: {found.verify(4, 4).rank_agreement:.2f}")

site = found.top(1)[0].site
looked = nethook.attention_probs(model, base, at=site)[:, :, -1].mean(0).argmax(-1)
back = (base.shape[1] - 1 - looked).tolist()
print(f"its heads look back {back} tokens; the same token is {LENGTH} back")
with nethook.edit(model, outputs={site: edits.zero_units(range(HEADS))}):
    without = (model(base)[:, -1].argmax(-1, keepdim=True) == right).float().mean()
print(f"right answers without them: {without:.0%}")
found.figure().write_html("induction_heads.html")
