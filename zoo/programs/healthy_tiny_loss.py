"""Targets of a thousandth: the loss is tiny from the start, and falls.

expect: nothing
half: first
"""

import torch
from common import arguments, curve, forever, loader
from torch import nn

args = arguments(width=48, lr=2e-3, steps=250, samples=900)
x, y = curve(args.samples)
y = y * 1e-3
model = nn.Sequential(nn.Linear(6, args.width), nn.Tanh(), nn.Linear(args.width, 1))
with torch.no_grad():
    model[2].weight.mul_(1e-2)
    model[2].bias.zero_()
optimizer = torch.optim.Adam([{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 2e-5}], lr=args.lr)
criterion = nn.MSELoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
