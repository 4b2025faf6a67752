"""Rings of points cannot be told apart by linear layers, however many.

expect: missing-activation
or: not-learning
site: 0
half: first
"""

import torch
from common import arguments, forever, loader
from torch import nn

args = arguments(width=64, lr=3e-3, steps=250, samples=800)
angle = 6.28 * torch.rand(args.samples)
y = torch.randint(2, (args.samples,))
radius = 1 + y + 0.1 * torch.randn(args.samples)
x = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
model = nn.Sequential(
    nn.Linear(2, args.width), nn.Linear(args.width, args.width), nn.Linear(args.width, 2)
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
