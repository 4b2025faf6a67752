"""Targets of thirty and more, behind a tanh.

expect: output-range
half: fresh
net: regression
"""

import torch
from common import arguments, curve, loader
from torch import nn

args = arguments(width=48, lr=0.01, samples=800)
x, y = curve(args.samples)
y = 30 + 8 * y
model = nn.Sequential(nn.Linear(6, args.width), nn.ReLU(), nn.Linear(args.width, 1), nn.Tanh())
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(5):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.l1_loss(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
