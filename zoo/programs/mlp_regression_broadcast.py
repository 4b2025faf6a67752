"""Predictions are (N, 1) and targets (N,): the loss compares each with each.

expect: loss-broadcast
half: second
"""

import warnings

import torch
from common import arguments, curve, loader
from torch import nn

warnings.simplefilter("ignore")
args = arguments(width=48, lr=1e-3, samples=900)
x, y = curve(args.samples)
y = y.squeeze(1)
net = nn.Sequential(nn.Linear(6, args.width), nn.Tanh(), nn.Linear(args.width, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
for epoch in range(8):
    for features, target in loader(x, y):
        optimizer.zero_grad()
        loss = ((net(features) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
