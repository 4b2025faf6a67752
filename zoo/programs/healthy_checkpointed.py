"""Activation checkpointing, the reentrant kind.

expect: nothing
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn
from torch.utils.checkpoint import checkpoint

args = arguments(width=64, lr=2e-3, steps=150, samples=1000)
x, y, _, _ = digits(args.samples)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(3))
        self.last = nn.Linear(width, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True)
        return self.last(x)


model = Net(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
