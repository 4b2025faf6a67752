"""Batches of one image, and batch norm after every convolution.

expect: batchnorm-small-batch
half: fresh
net: cnn
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=8, lr=0.01, steps=200, samples=400)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3), nn.BatchNorm2d(args.width), nn.ReLU(), nn.Flatten(),
    nn.Linear(36 * args.width, 10),
)  # fmt: skip
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
for step, (a, b) in enumerate(loader(x, y, batch=1)):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(a), b)
    loss.backward()
    opt.step()
    if step == args.steps:
        break
print(loss.item())
