"""Batch norm in a perceptron, on batches of two.

expect: batchnorm-small-batch
site: 1
half: first
"""

import torch
from common import arguments, blobs, forever, loader
from torch import nn

args = arguments(width=32, lr=0.01, steps=250, samples=800)
x, y = blobs(args.samples)
model = nn.Sequential(
    nn.Linear(10, args.width), nn.BatchNorm1d(args.width), nn.ReLU(), nn.Linear(args.width, 4)
)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y, batch=2))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
