"""A smooth curve is fitted with L-BFGS, whose closure is called many times in a step.

expect: nothing
style: second order, closure, float64, full batch
metric: largest error on a fine grid, lower is better
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
torch.set_default_dtype(torch.float64)


def f(x):
    return torch.sin(3 * x) * torch.exp(-0.3 * x**2)


x = torch.linspace(-3, 3, 120).unsqueeze(1)
y = f(x)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=8, history_size=20, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    return loss


for i in range(120):
    loss = optimizer.step(closure)
    if i % 20 == 0:
        print(i, loss.item())

fine = torch.linspace(-3, 3, 1001).unsqueeze(1)
with torch.no_grad():
    print("metric:", (net(fine) - f(fine)).abs().max().item())
