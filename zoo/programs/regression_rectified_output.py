"""A regression to values of both signs ends in a rectifier.

expect: output-range
or: dead-units
half: first
"""

import torch
from common import arguments, curve, forever, loader
from torch import nn

args = arguments(width=48, lr=2e-3, steps=200, samples=900)
x, y = curve(args.samples)
model = nn.Sequential(nn.Linear(6, args.width), nn.ReLU(), nn.Linear(args.width, 1), nn.ReLU())
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.MSELoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
