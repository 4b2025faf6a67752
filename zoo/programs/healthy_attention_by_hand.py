"""Attention written out: a softmax inside the network, a causal mask of minus infinity.

expect: nothing
half: first
"""

import math

import torch
from common import arguments, forever, loader, sentences
from torch import nn

args = arguments(width=32, lr=3e-3, steps=250, samples=900)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return self.out(scores.masked_fill(mask, float("-inf")).softmax(-1) @ v)


class Reader(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(20, width)
        self.position = nn.Parameter(torch.randn(12, width) * 0.2)
        self.attention = Attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position
        x = x + self.attention(x)
        return self.head((x + self.mlp(x)).mean(1))


x, y = sentences(args.samples)
model = Reader(args.width)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
