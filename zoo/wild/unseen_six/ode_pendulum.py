"""The right-hand side of an ODE is learned from short noisy pieces of a pendulum's path, through Runge-Kutta steps.

expect: nothing
style: gradients through an unrolled solver, multiple shooting, float64
metric: error of a path of a hundred steps, lower is better
"""

import argparse

import torch
import torch.nn as nn

torch.set_default_dtype(torch.float64)
DT = 0.1


def pendulum(s):
    return torch.stack([s[..., 1], -torch.sin(s[..., 0]) * 2], -1)


def rk4(f, s):
    k1 = f(s)
    k2 = f(s + DT / 2 * k1)
    k3 = f(s + DT / 2 * k2)
    k4 = f(s + DT * k3)
    return s + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def path(f, s, n):
    states = [s]
    for _ in range(n):
        states.append(rk4(f, states[-1]))
    return torch.stack(states)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 2))

    def forward(self, s):
        return self.net(s)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=900)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    starts = torch.rand(64, 2) * 3 - 1.5
    seen = path(pendulum, starts, 40) + 0.005 * torch.randn(41, 64, 2)
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9975)
    for step in range(args.steps):
        length = 2 + 4 * step // args.steps
        t, which = torch.randint(0, 40 - length, (1,)).item(), torch.randint(64, (32,))
        piece = seen[t : t + length + 1, which]
        loss = (path(field, piece[0], length) - piece).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 150 == 0:
            print("step", step, "length", length, "loss", loss.item())
    with torch.no_grad():
        start = torch.tensor([[1.0, 0.0], [-0.5, 0.8], [0.3, -1.0]])
        print("metric:", (path(field, start, 100) - path(pendulum, start, 100)).pow(2).mean().sqrt().item())
