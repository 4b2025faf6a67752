"""A deep regression without norms, started too large, with a usual rate.

expect: exploding-gradient
or: bad-init-scale, learning-rate-too-high, non-finite
half: first
"""

import torch
from common import arguments, curve, forever, loader
from torch import nn

args = arguments(width=64, depth=12, lr=1e-3, steps=120, samples=800)
x, y = curve(args.samples)
layers = [nn.Linear(6, args.width), nn.ReLU()]
for _ in range(args.depth):
    layers += [nn.Linear(args.width, args.width), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(args.width, 1))
for module in model:
    if isinstance(module, nn.Linear):
        nn.init.kaiming_normal_(module.weight)
        module.weight.data.mul_(1.6)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.MSELoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
