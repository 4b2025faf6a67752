"""A conditional neural process: the answer for a point depends on the other points of its function, on purpose.

expect: nothing
metric: mean squared error at new points of new functions, lower is better
"""

import argparse

import torch
import torch.nn as nn


class CNP(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.decoder = nn.Sequential(nn.Linear(dim + 1, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 2))

    def forward(self, xc, yc, xt):
        r = self.encoder(torch.cat([xc, yc], -1)).mean(1, keepdim=True)
        out = self.decoder(torch.cat([r.expand(-1, xt.size(1), -1), xt], -1))
        mean, raw = out.chunk(2, -1)
        return mean, 0.05 + 0.95 * nn.functional.softplus(raw)


def sines(batch, n):
    amplitude, phase = 0.5 + torch.rand(batch, 1, 1), 3.14 * torch.rand(batch, 1, 1)
    x = 4 * torch.rand(batch, n, 1) - 2
    return x, amplitude * torch.sin(2 * x + phase)


def nll(mean, sigma, y):
    return -torch.distributions.Normal(mean, sigma).log_prob(y).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    model = CNP()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1500):
        n_context = int(torch.randint(4, 12, (1,)))
        x, y = sines(16, n_context + 15)
        mean, sigma = model(x[:, :n_context], y[:, :n_context], x)
        loss = nll(mean, sigma, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 150 == 0:
            print(f"step {step}: nll {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        x, y = sines(200, 30)
        mean, _ = model(x[:, :10], y[:, :10], x[:, 10:])
    print("metric:", (mean - y[:, 10:]).pow(2).mean().item())


if __name__ == "__main__":
    main()
