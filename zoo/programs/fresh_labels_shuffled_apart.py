"""Inputs and labels were shuffled apart before a transformer sees them.

expect: not-learning
or: class-collapse
half: fresh
net: transformer
"""

import torch
from common import arguments, loader, sentences
from torch import nn

args = arguments(width=32, lr=5e-4, samples=3000)
ids, label = sentences(args.samples)
label = label[torch.randperm(len(label))]


class Reader(nn.Module):
    def __init__(self, width):
        super().__init__()
        width = max(8, width // 4 * 4)
        self.embed = nn.Embedding(20, width)
        self.attend = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        x = self.embed(ids)
        y, _ = self.attend(x, x, x)
        return self.head(self.norm(x + y).mean(1))


model = Reader(args.width)
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(3):
    for a, b in loader(ids, label, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
