"""A network solves u'' + 0.4 u' + 4 u = 0 from its equation and two initial values alone.

expect: nothing
style: PINN, derivatives by autograd with create_graph, no data, losses of different weight, Adam
metric: largest error against the exact solution, lower is better
"""

import argparse
import math

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, t):
        return self.net(t)


def d(u, t):
    return torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]


def exact(t, mu=0.4, k=4.0):
    w = math.sqrt(k - mu**2 / 4)
    return torch.exp(-mu / 2 * t) * (torch.cos(w * t) + mu / (2 * w) * torch.sin(w * t))


def main(seed, steps):
    torch.manual_seed(seed)
    u = Net()
    optimizer = torch.optim.Adam(u.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [int(0.5 * steps), int(0.8 * steps)], gamma=0.3)
    zero = torch.zeros(1, 1, requires_grad=True)
    points = torch.linspace(0, 3, 60).unsqueeze(1).requires_grad_()
    for i in range(steps):
        optimizer.zero_grad()
        value = u(zero)
        start = (value - 1).pow(2).mean() + 0.1 * d(value, zero).pow(2).mean()
        ut = u(points)
        first = d(ut, points)
        residual = d(first, points) + 0.4 * first + 4.0 * ut
        loss = start + 3e-2 * residual.pow(2).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if i % 300 == 0:
            print("step", i, "loss", loss.item())
    t = torch.linspace(0, 3, 300).unsqueeze(1)
    with torch.no_grad():
        return (u(t) - exact(t)).abs().max().item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--steps", type=int, default=2600)
    a = p.parse_args()
    print("metric:", main(a.seed, a.steps))
