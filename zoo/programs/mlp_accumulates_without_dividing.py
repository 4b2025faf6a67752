"""Gradients of eight micro-batches are added up and never divided.

expect: unscaled-accumulation
or: learning-rate-too-high
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=0.01, samples=1200)
x, y, _, _ = digits(args.samples)
model = nn.Sequential(nn.Linear(64, args.width), nn.Tanh(), nn.Linear(args.width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    optimizer.zero_grad()
    for i, (a, b) in enumerate(loader(x, y, batch=8, drop_last=True), 1):
        loss = criterion(model(a), b)
        loss.backward()
        if i % 8 == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
