"""Conditional flow matching with an average of the weights for sampling: targets are made of the inputs and of noise.

expect: nothing
metric: mean distance of samples from the ring, lower is better
"""

import argparse
import copy

import torch
import torch.nn as nn


class VelocityField(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], 1))


class EMA:
    def __init__(self, model, decay=0.99):
        self.shadow, self.decay = copy.deepcopy(model).requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


def ring(n):
    angle = 6.2832 * torch.rand(n, 1)
    return 1.5 * torch.cat([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


@torch.no_grad()
def sample(field, n, steps=40):
    x = torch.randn(n, 2)
    for i in range(steps):
        x = x + field(x, torch.full((n, 1), i / steps)) / steps
    return x


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    field = VelocityField()
    ema = EMA(field)
    optimizer = torch.optim.Adam(field.parameters(), lr=2e-3)
    for step in range(1000):
        x1, x0, t = ring(128), torch.randn(128, 2), torch.rand(128, 1)
        xt = (1 - t) * x0 + t * x1
        loss = (field(xt, t) - (x1 - x0)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(field)
        if step % 100 == 0:
            print(f"{step}: loss {loss.item():.3f}")
    x = sample(ema.shadow, 1000)
    print("metric:", (x.norm(dim=1) - 1.5).abs().mean().item())
