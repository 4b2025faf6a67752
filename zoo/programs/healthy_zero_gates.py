"""Residual blocks whose gates start at zero.

expect: nothing
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=48, depth=6, lr=2e-3, steps=200, samples=1000)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 2 * width)
        self.fc2 = nn.Linear(2 * width, width)
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.gate * self.fc2(torch.relu(self.fc1(self.norm(x))))


x, y, _, _ = digits(args.samples)
blocks = [Block(args.width) for _ in range(args.depth)]
model = nn.Sequential(nn.Linear(64, args.width), *blocks, nn.Linear(args.width, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
