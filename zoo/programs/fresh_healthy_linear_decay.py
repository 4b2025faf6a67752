"""The rate falls in a straight line to zero at the last step.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=48, lr=0.2, steps=180, samples=900)
x, y, _, _ = digits(args.samples)
model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=args.steps)
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(a), b)
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 40 == 0:
        print(step, loss.item())
