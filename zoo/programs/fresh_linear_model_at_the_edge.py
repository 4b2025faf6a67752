"""A linear model at a rate just beyond what its steepest direction bears.

expect: oscillating-loss
or: learning-rate-too-high
half: fresh
net: regression
"""

import torch
from common import arguments
from torch import nn

args = arguments(samples=400, steps=200)
x = torch.randn(args.samples, 8) * torch.tensor([5.0, 3, 2, 1, 1, 1, 1, 1])
y = x @ torch.randn(8, 1) + 0.1 * torch.randn(args.samples, 1)
model = nn.Linear(8, 1)
steepest = torch.linalg.eigvalsh(2 * x.T @ x / len(x)).max().item()
opt = torch.optim.SGD(model.parameters(), lr=2.02 / steepest)
for step in range(args.steps):
    opt.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print(step, loss.item())
