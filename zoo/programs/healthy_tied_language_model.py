"""A tiny language model: embedding used through its weight, attention whose out_proj is never called.

expect: nothing
half: second
"""

import torch
import torch.nn.functional as F
from common import arguments
from torch import nn

args = arguments(width=32, depth=2, lr=3e-3, steps=220)
text = "the quick brown fox jumps over the lazy dog and the dog sleeps on while the fox runs. " * 30
letters = sorted(set(text))
data = torch.tensor([letters.index(c) for c in text])


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        h = self.ln1(x)
        x = x + self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class LM(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        width = max(8, width // 4 * 4)
        self.embed = nn.Embedding(len(letters), width)
        self.position = nn.Embedding(32, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.embed.weight, std=0.05)

    def forward(self, tokens):
        mask = torch.full((32, 32), float("-inf")).triu(1)
        x = self.embed(tokens) + self.position.weight
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x) @ self.embed.weight.T


model = LM(args.width, args.depth)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.1)
for step in range(args.steps):
    at = torch.randint(len(data) - 33, (16,))
    batch = torch.stack([data[i : i + 33] for i in at])
    logits = model(batch[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
