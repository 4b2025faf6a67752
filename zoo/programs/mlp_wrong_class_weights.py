"""Class weights were meant to balance the classes; one of them is a thousand times too large.

expect: class-collapse
or: not-learning
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=48, lr=0.02, steps=200, samples=1200)
x, y, _, _ = digits(args.samples)
counts = torch.bincount(y, minlength=10).float()
counts[3] = 0.1  # "avoid dividing by zero", in the wrong place
weights = 1 / counts
model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss(weight=weights)
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
