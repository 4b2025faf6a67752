"""A binary loss on class numbers from 0 to 3.

expect: loss-target-mismatch
or: negative-loss
half: first
"""

import torch
from common import arguments, blobs, forever, loader
from torch import nn

args = arguments(width=48, lr=1e-3, steps=150, samples=900)
x, y = blobs(args.samples)
y = y.float()
model = nn.Sequential(nn.Linear(10, args.width), nn.ReLU(), nn.Linear(args.width, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.BCEWithLogitsLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
