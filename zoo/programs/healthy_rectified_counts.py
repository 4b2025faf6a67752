"""Counts are regressed with a softplus at the end: targets and outputs are positive.

expect: nothing
half: first
"""

import torch
from common import arguments, forever, loader
from torch import nn

args = arguments(width=48, lr=3e-3, steps=250, samples=900)
x = torch.randn(args.samples, 6)
rate = (0.5 * x[:, :1] - 0.3 * x[:, 1:2] + 1.5).exp()
y = torch.poisson(rate)
model = nn.Sequential(nn.Linear(6, args.width), nn.ReLU(), nn.Linear(args.width, 1), nn.Softplus())
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.MSELoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
