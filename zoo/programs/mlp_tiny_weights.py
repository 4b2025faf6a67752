"""Eight layers whose weights start a hundred times too small.

expect: bad-init-scale
or: vanishing-gradient
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, depth=8, lr=0.05, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)
layers = [nn.Linear(64, args.width), nn.ReLU()]
for _ in range(args.depth):
    layers += [nn.Linear(args.width, args.width), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(args.width, 10))
for module in model:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.001)
        nn.init.zeros_(module.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
