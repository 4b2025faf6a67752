"""Sigmoid layers whose weights start far too wide: nearly every unit sits at one of its ends.

expect: saturated-activation
or: bad-init-scale, vanishing-gradient
site: 1
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, lr=0.01, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.Sigmoid(), nn.Linear(args.width, args.width), nn.Sigmoid(),
    nn.Linear(args.width, 10),
)
for module in (model[0], model[2]):
    nn.init.normal_(module.weight, std=4.0)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
