"""Biases of -6: the rectifiers of the second layer never fire.

expect: dead-units
site: 3
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, lr=0.01, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)

model = nn.Sequential(
    nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, args.width), nn.ReLU(),
    nn.Linear(args.width, 10),
)
nn.init.constant_(model[2].bias, -6.0)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
