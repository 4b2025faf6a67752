"""Finds mass, damping and stiffness of an oscillator by gradient descent through a simulator, from one recording.

expect: nothing
style: invites 'repeated batch', 'unusual learning rates' and 'few parameters': there is one recording, three physical numbers of different size in log space, no network at all
"""
import argparse

import torch
from torch import nn


class Oscillator(nn.Module):
    """m x'' + c x' + k x = u(t), semi-implicit Euler."""

    def __init__(self, m=1.0, c=1.0, k=1.0):
        super().__init__()
        self.log_m = nn.Parameter(torch.tensor(float(m)).log())
        self.log_c = nn.Parameter(torch.tensor(float(c)).log())
        self.log_k = nn.Parameter(torch.tensor(float(k)).log())

    def forward(self, u, dt):
        m, c, k = self.log_m.exp(), self.log_c.exp(), self.log_k.exp()
        x = v = torch.zeros(())
        xs = []
        for force in u:
            v = v + dt * (force - c * v - k * x) / m
            x = x + dt * v
            xs.append(x)
        return torch.stack(xs)

    def values(self):
        return [p.exp().item() for p in (self.log_m, self.log_c, self.log_k)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    dt, n = 0.1, 100
    t = torch.arange(n) * dt
    u = torch.sin(0.7 * t) + torch.sin(1.9 * t + 1) + torch.sign(torch.sin(0.4 * t))
    truth = Oscillator(m=1.8, c=0.45, k=3.1)
    with torch.no_grad():
        recording = truth(u, dt)
        recording = recording + 0.02 * torch.randn(n)

    model = Oscillator()
    optimizer = torch.optim.Adam([
        {"params": [model.log_m], "lr": 0.06},
        {"params": [model.log_c], "lr": 0.1},
        {"params": [model.log_k], "lr": 0.06},
    ])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    for step in range(args.steps):
        optimizer.zero_grad()
        loss = ((model(u, dt) - recording) ** 2).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 50 == 49:
            print("step %d loss %.6f  m %.3f c %.3f k %.3f" % (step + 1, loss.item(), *model.values()))

    errors = [abs(a / b - 1) for a, b in zip(model.values(), truth.values())]
    print("metric: %.4f" % max(errors))


if __name__ == "__main__":
    main()
