"""Attention over padded sequences, masked with -inf and with the least number of the type.

expect: nothing
half: fresh
net: transformer
"""

import torch
from common import arguments, forever, loader, sentences
from torch import nn

args = arguments(width=32, lr=3e-3, steps=160, samples=800)
width = max(8, args.width // 4 * 4)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(21, width, padding_idx=0)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)
        self.place = nn.Parameter(0.3 * torch.randn(12, width))

    def forward(self, ids):
        x = self.embed(ids) + self.place
        scores = self.query(x) @ self.key(x).transpose(1, 2) / width**0.5
        causal = torch.ones(12, 12).triu(1).bool()
        scores = scores.masked_fill(causal, float("-inf"))
        scores = scores.masked_fill((ids == 20)[:, None], torch.finfo(scores.dtype).min)
        x = x + torch.softmax(scores, -1) @ self.value(x)
        return self.head(torch.relu(x).amax(1))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for step, (a, b) in zip(range(args.steps), forever(loader(*sentences(args.samples)))):
    a[:, 10:] = torch.where(a[:, 10:] > 2, 20, a[:, 10:])  # "padding", where nothing is lost
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
