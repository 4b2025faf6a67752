"""Accumulation over four batches, with a zero_grad in the wrong branch: only nothing is stepped on.

expect: gradient-wiped
half: fresh
net: cnn
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=12, lr=0.05, samples=900)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(nn.Conv2d(1, args.width, 3), nn.ReLU(), nn.Flatten(), nn.Linear(36 * args.width, 10))
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
for epoch in range(6):
    for i, (a, b) in enumerate(loader(x, y, batch=16)):
        loss = nn.functional.cross_entropy(model(a), b) / 4
        loss.backward()
        if i % 4 == 3:
            opt.zero_grad()
            opt.step()
    print(epoch, loss.item())
