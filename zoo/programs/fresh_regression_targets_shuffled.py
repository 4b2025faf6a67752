"""Targets of a regression that were shuffled apart from their inputs.

expect: not-learning
half: fresh
net: regression
"""

import torch
from common import arguments, curve, loader
from torch import nn

args = arguments(width=32, lr=1e-3, samples=4000)
x, y = curve(args.samples)
y = y[torch.randperm(len(y))]
model = nn.Sequential(nn.Linear(6, args.width), nn.ReLU(), nn.Linear(args.width, 1))
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(2):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
