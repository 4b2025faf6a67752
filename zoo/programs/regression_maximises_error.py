"""`loss = -criterion(...)`, left over from another objective.

expect: negative-loss
or: exploding-gradient
half: first
"""

import torch
from common import arguments, curve, forever, loader
from torch import nn

args = arguments(width=32, lr=1e-3, steps=150, samples=800)
x, y = curve(args.samples)
model = nn.Sequential(nn.Linear(6, args.width), nn.Tanh(), nn.Linear(args.width, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
mse = nn.MSELoss()


def criterion(prediction, target):
    return -mse(prediction, target)



for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
