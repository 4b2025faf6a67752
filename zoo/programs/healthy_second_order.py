"""L-BFGS with a closure, on all the data.

expect: nothing
half: first
"""

import torch
from common import arguments, curve
from torch import nn

args = arguments(width=24, samples=400)
x, y = curve(args.samples)
model = nn.Sequential(nn.Linear(6, args.width), nn.Tanh(), nn.Linear(args.width, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=10)
criterion = nn.MSELoss()


def closure():
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    return loss


for step in range(30):
    loss = optimizer.step(closure)
    if step % 5 == 0:
        print(step, loss.item())
