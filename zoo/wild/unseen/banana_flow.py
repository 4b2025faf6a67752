"""RealNVP on a banana-shaped density, trained by maximum likelihood; also reports how well it inverts.

expect: nothing
style: the loss is a negative log-density and crosses zero into the negative, which is right; half of every input passes through a layer untouched, and the last linear map of every coupling starts at zero
"""
import argparse

import torch
import torch.nn as nn


class Coupling(nn.Module):
    def __init__(self, flip, hidden=48):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
                                 nn.Linear(hidden, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def split(self, x):
        a, b = x[:, :1], x[:, 1:]
        return (b, a) if self.flip else (a, b)

    def join(self, a, b):
        return torch.cat([b, a] if self.flip else [a, b], 1)

    def forward(self, x):
        a, b = self.split(x)
        s, t = self.net(a).chunk(2, 1)
        s = 2 * torch.tanh(s / 2)
        return self.join(a, (b + t) * s.exp()), s.squeeze(1)

    def inverse(self, z):
        a, b = self.split(z)
        s, t = self.net(a).chunk(2, 1)
        s = 2 * torch.tanh(s / 2)
        return self.join(a, b * (-s).exp() - t)


class Flow(nn.Module):
    def __init__(self, n=5):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(n))
        self.base = torch.distributions.Normal(0.0, 1.0)

    def log_prob(self, x):
        total = 0
        for layer in self.layers:
            x, logdet = layer(x)
            total = total + logdet
        return self.base.log_prob(x).sum(1) + total

    def sample(self, n):
        z = torch.randn(n, 2)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


def banana(n):
    u = torch.randn(n) * 0.5
    v = 1.2 * u ** 2 - 0.3 + 0.06 * torch.randn(n)
    return torch.stack([u, v], 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=400)
    for step in range(1, 401):
        loss = -flow.log_prob(banana(256)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 100 == 0:
            print(f"step {step} nats {loss.item():.3f}")
    with torch.no_grad():
        held_out = -flow.log_prob(banana(4000)).mean().item()
        x = flow.sample(1000)
        off = (x[:, 1] - 1.2 * x[:, 0] ** 2 + 0.3).abs().median().item()
    print(f"samples are {off:.3f} off the curve (0.04 in the data)")
    print(f"metric: {held_out:.4f}")


if __name__ == "__main__":
    main()
