"""Batch norm on batches of two images.

expect: batchnorm-small-batch
site: 1
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=12, lr=0.01, steps=250, samples=900)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.BatchNorm2d(args.width), nn.ReLU(),
    nn.MaxPool2d(2), nn.Flatten(), nn.Linear(args.width * 16, 32), nn.BatchNorm1d(32), nn.ReLU(),
    nn.Linear(32, 10),
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
