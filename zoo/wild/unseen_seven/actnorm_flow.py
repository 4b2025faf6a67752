"""A flow of affine couplings, invertible mixings and actnorm that is set from the first batch, for tabular density.

expect: nothing
style: data-dependent initialisation, loss that falls below zero, float64
metric: test negative log-likelihood, lower is better
"""

import argparse
import math

import torch
import torch.nn as nn


class ActNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.loc, self.log_scale = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.zeros(d))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if not self.ready:
            with torch.no_grad():
                self.loc.copy_(-x.mean(0))
                self.log_scale.copy_(-x.std(0).log())
                self.ready.fill_(True)
        return (x + self.loc) * self.log_scale.exp(), self.log_scale.sum().expand(len(x))


class Mixing(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w = nn.Parameter(torch.linalg.qr(torch.randn(d, d))[0])

    def forward(self, x):
        return x @ self.w, torch.linalg.slogdet(self.w)[1].expand(len(x))


class Coupling(nn.Module):
    def __init__(self, d, width=48):
        super().__init__()
        self.d = d // 2
        self.net = nn.Sequential(
            nn.Linear(self.d, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 2 * (d - self.d)),
        )
        nn.init.zeros_(self.net[-1].weight), nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x[:, : self.d], x[:, self.d :]
        shift, s = self.net(a).chunk(2, 1)
        s = 2 * torch.tanh(s / 2)
        return torch.cat([a, b * s.exp() + shift], 1), s.sum(1)


class Flow(nn.Module):
    def __init__(self, d, depth=5):
        super().__init__()
        self.layers = nn.ModuleList(
            part for _ in range(depth) for part in (ActNorm(d), Mixing(d), Coupling(d))
        )

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, ldj = layer(x)
            total = total + ldj
        return total - 0.5 * (x**2 + math.log(2 * math.pi)).sum(1)


def table(n):
    a = torch.randn(n, 3)
    b = torch.stack(
        [a[:, 0] ** 2 * 0.5, torch.sin(2 * a[:, 1]), a[:, 2] * a[:, 0] * 0.3], 1
    ) + 0.05 * torch.randn(n, 3)
    return 3 + 0.3 * torch.cat([a, b], 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_default_dtype(torch.float64)
    train, test = table(3000), table(1000)
    flow = Flow(6)
    optimizer = torch.optim.Adamax(flow.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for epoch in range(16):
        for batch in train[torch.randperm(len(train))].split(100):
            loss = -flow.log_prob(batch).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(flow.parameters(), 20.0)
            optimizer.step()
        scheduler.step()
        if epoch % 3 == 0:
            print(f"epoch {epoch:3d} nll {loss.item():.3f}")
    with torch.no_grad():
        print("metric:", -flow.log_prob(test).mean().item())
