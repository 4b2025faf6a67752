"""Sixteen sigmoid layers, default start: nothing arrives at the early ones.

expect: vanishing-gradient
site: 0
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=48, depth=16, lr=0.05, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)
layers = [nn.Linear(64, args.width), nn.Sigmoid()]
for _ in range(args.depth):
    layers += [nn.Linear(args.width, args.width), nn.Sigmoid()]
model = nn.Sequential(*layers, nn.Linear(args.width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
