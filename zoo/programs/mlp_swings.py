"""Gradient descent on all the data, with steps that overshoot the valley and come back.

expect: oscillating-loss
or: learning-rate-too-high
half: first
"""

import torch
from common import arguments, blobs
from torch import nn

args = arguments(width=10, steps=200, samples=500)
x, y = blobs(args.samples, features=args.width, spread=3.0)
model = nn.Linear(args.width, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=4.0)
for step in range(args.steps):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
