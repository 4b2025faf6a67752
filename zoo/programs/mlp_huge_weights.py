"""Weights drawn with a spread of 1 in layers of a hundred units.

expect: bad-init-scale
or: exploding-gradient, learning-rate-too-high
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=96, depth=5, lr=1e-4, steps=150, samples=900)
x, y, _, _ = digits(args.samples)

layers = [nn.Linear(64, args.width), nn.ReLU()]
for _ in range(args.depth):
    layers += [nn.Linear(args.width, args.width), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(args.width, 10))
for module in model:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
