"""The heads come from a list of one module times four: all horizons share one head and get one and the same answer.

expect: shared-layers
line: nn.ModuleList([ForecastHead(hidden)] * len(horizons))
source: https://github.com/linkedin/Liger-Kernel/pull/269
metric: test mean absolute error, lower is better
"""

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_series(n, generator):
    t = torch.arange(n, dtype=torch.float32)
    wave = torch.sin(2 * math.pi * t / 24) + 0.6 * torch.sin(2 * math.pi * t / 11 + 0.7)
    return wave + 0.1 * torch.randn(n, generator=generator)


def windows(series, length, horizons):
    last = len(series) - length - max(horizons)
    xs = torch.stack([series[i : i + length] for i in range(last)])
    ys = torch.stack(
        [torch.stack([series[i + length + h - 1] for h in horizons]) for i in range(last)]
    )
    return xs, ys


class ForecastHead(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.mix = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, h):
        return self.out(h + torch.relu(self.mix(h))).squeeze(-1)


class MultiHorizon(nn.Module):
    def __init__(self, length, hidden, horizons):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(length, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.heads = nn.ModuleList([ForecastHead(hidden)] * len(horizons))

    def forward(self, x):
        h = self.trunk(x)
        return torch.stack([head(h) for head in self.heads], dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed + 100)

    horizons = [1, 4, 8, 12]
    series = make_series(3000, g)
    x, y = windows(series, 32, horizons)
    x_train, y_train, x_test, y_test = x[:2300], y[:2300], x[2400:], y[2400:]
    loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)

    model = MultiHorizon(32, 48, horizons)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.MSELoss()
    for epoch in range(args.epochs):
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: train loss {total / len(loader):.4f}")

    model.eval()
    with torch.no_grad():
        error = (model(x_test) - y_test).abs().mean().item()
    print("metric:", error)


if __name__ == "__main__":
    main()
