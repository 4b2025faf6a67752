"""First the head alone, then everything at a lower rate: two optimizers, one after the other.

expect: nothing
half: fresh
net: cnn
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=12, lr=0.01, samples=800)
x, y, vx, vy = digits(args.samples, image=True)
features = nn.Sequential(nn.Conv2d(1, args.width, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
head = nn.Linear(9 * args.width, 10)
model = nn.Sequential(features, head)


def epoch(optimizer):
    for a, b in loader(x, y, batch=32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
    return loss.item()


features.requires_grad_(False)
optimizer = torch.optim.Adam(head.parameters(), lr=args.lr)
for _ in range(3):
    print(epoch(optimizer))
features.requires_grad_(True)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr / 3)
for _ in range(4):
    print(epoch(optimizer))
