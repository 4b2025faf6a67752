"""Sensor readings between 400 and 1,600 go into a tanh network as they are.

expect: input-not-normalized
or: saturated-activation
half: second
"""

import torch
from common import arguments, blobs, forever, loader
from torch import nn

args = arguments(width=48, lr=1e-3, steps=200, samples=900)
x, y = blobs(args.samples)
x = x * 90 + 1000
model = nn.Sequential(
    nn.Linear(10, args.width), nn.Tanh(), nn.Linear(args.width, args.width), nn.Tanh(),
    nn.Linear(args.width, 4),
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
