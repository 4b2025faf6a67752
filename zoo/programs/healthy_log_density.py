"""A normal distribution is fitted by its log density: rightly negative in the end.

expect: nothing
half: first
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=32, lr=5e-3, steps=250)
model = nn.Sequential(nn.Linear(2, args.width), nn.Tanh(), nn.Linear(args.width, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for step in range(args.steps):
    x = torch.rand(128, 2)
    y = x[:, :1] - 0.5 * x[:, 1:] + 0.02 * torch.randn(128, 1)
    mean, log_spread = model(x).split(1, dim=1)
    loss = nn.functional.gaussian_nll_loss(mean, y, (2 * log_spread).exp())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
