"""A physics-informed network for y'' = -y: the same points every step, derivatives in the loss.

expect: nothing
half: second
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=32, lr=5e-3, steps=250)
t = torch.linspace(0, 3, 64)[:, None].requires_grad_(True)
net = nn.Sequential(nn.Linear(1, args.width), nn.Tanh(), nn.Linear(args.width, args.width), nn.Tanh(), nn.Linear(args.width, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
for step in range(args.steps):
    y = net(t)
    (dy,) = torch.autograd.grad(y.sum(), t, create_graph=True)
    (ddy,) = torch.autograd.grad(dy.sum(), t, create_graph=True)
    start = (y[0] - 1) ** 2 + dy[0] ** 2
    loss = ((ddy + y) ** 2).mean() + 5 * start.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
