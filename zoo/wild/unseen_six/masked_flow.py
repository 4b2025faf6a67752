"""A masked autoregressive flow on four correlated numbers: the loss is a density and goes below zero.

expect: nothing
style: MADE layers with masks as buffers, reversed order between layers, log-likelihood in nats
metric: log-likelihood of held-out points, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MaskedLinear(nn.Linear):
    def __init__(self, i, o, mask):
        super().__init__(i, o)
        self.register_buffer("mask", mask)

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias)


class MADE(nn.Module):
    def __init__(self, dim, hidden=48):
        super().__init__()
        d_in, d_hidden = torch.arange(dim), torch.arange(hidden) % (dim - 1)
        self.l1 = MaskedLinear(dim, hidden, (d_hidden[:, None] >= d_in[None]).float())
        self.l2 = MaskedLinear(hidden, hidden, (d_hidden[:, None] >= d_hidden[None]).float())
        out = (d_in[:, None] > d_hidden[None]).float()
        self.l3 = MaskedLinear(hidden, 2 * dim, torch.cat([out, out]))

    def forward(self, x):
        shift, scale = self.l3(torch.tanh(self.l2(torch.tanh(self.l1(x))))).chunk(2, 1)
        scale = 2 * torch.tanh(scale / 2)
        return (x - shift) * torch.exp(-scale), -scale.sum(1)


class MAF(nn.Module):
    def __init__(self, dim, layers=4):
        super().__init__()
        self.layers = nn.ModuleList([MADE(dim) for _ in range(layers)])

    def log_prob(self, x):
        total = 0.0
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
            x = x.flip(1)
        return total - 0.5 * (x**2).sum(1) - 0.5 * x.size(1) * math.log(2 * math.pi)


def measurements(n):
    a = torch.randn(n)
    b = 0.5 * a**2 - 0.5 + 0.2 * torch.randn(n)
    c = torch.sin(2 * b) + 0.1 * torch.randn(n)
    d = 0.7 * c - 0.3 * a + 0.1 * torch.randn(n)
    return torch.stack([a, b, c, d], 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=900)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    flow, data, test = MAF(4), measurements(5000), measurements(1000)
    optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    for step in range(args.steps):
        loss = -flow.log_prob(data[torch.randint(5000, (200,))]).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if step % 150 == 0:
            print("step", step, "loss", loss.item())
    with torch.no_grad():
        print("metric:", flow.log_prob(test).mean().item())
