"""Twenty tanh layers whose weights start at a tenth of their size.

expect: vanishing-gradient
or: bad-init-scale
site: 0
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=48, depth=20, lr=0.05, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)

layers = [nn.Linear(64, args.width), nn.Tanh()]
for _ in range(args.depth):
    layers += [nn.Linear(args.width, args.width), nn.Tanh()]
model = nn.Sequential(*layers, nn.Linear(args.width, 10))
for module in model:
    if isinstance(module, nn.Linear):
        nn.init.xavier_normal_(module.weight, gain=0.4)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
