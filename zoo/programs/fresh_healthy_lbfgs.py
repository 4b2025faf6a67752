"""Full-batch training with L-BFGS and a closure.

expect: nothing
half: fresh
net: regression
"""

import torch
from common import arguments, curve
from torch import nn

args = arguments(width=24, samples=300, steps=25)
x, y = curve(args.samples)
model = nn.Sequential(nn.Linear(6, args.width), nn.Tanh(), nn.Linear(args.width, 1))
opt = torch.optim.LBFGS(model.parameters(), lr=0.8, max_iter=8)


def closure():
    opt.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for step in range(args.steps):
    loss = opt.step(closure)
    if step % 5 == 0:
        print(step, loss.item())
