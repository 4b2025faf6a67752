"""Energy-load forecasting, levels around thousands: reversible instance normalisation inside, one linear map for all channels.

expect: nothing
style: raw series in and out, RevIN statistics detached, channel-independent shared Linear, chronological split, MAE on a scaled axis
"""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LOOKBACK, HORIZON = 96, 24


def make_series(rng, hours=4000, channels=6):
    t = np.arange(hours)[:, None]
    level = rng.uniform(800, 6000, channels)
    daily = np.sin(2 * np.pi * t / 24 + rng.uniform(0, 6.28, channels)) * rng.uniform(0.08, 0.25, channels)
    weekly = np.sin(2 * np.pi * t / 168 + rng.uniform(0, 6.28, channels)) * 0.06
    drift = np.cumsum(rng.normal(0, 0.0025, (hours, channels)), 0)
    noise = rng.normal(0, 0.015, (hours, channels))
    return (level * (1 + daily + weekly + drift + noise)).astype(np.float32)


class Windows(Dataset):
    def __init__(self, series):
        self.series = torch.from_numpy(series)

    def __len__(self):
        return len(self.series) - LOOKBACK - HORIZON + 1

    def __getitem__(self, i):
        return self.series[i : i + LOOKBACK], self.series[i + LOOKBACK : i + LOOKBACK + HORIZON]


class RevIN(nn.Module):
    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gain, self.shift = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def normalise(self, x):
        self.mu = x.mean(1, keepdim=True).detach()
        self.sigma = (x.var(1, keepdim=True, unbiased=False) + self.eps).sqrt().detach()
        return (x - self.mu) / self.sigma * self.gain + self.shift

    def restore(self, z):
        return (z - self.shift) / self.gain * self.sigma + self.mu


class Forecaster(nn.Module):
    def __init__(self, channels, hidden=64):
        super().__init__()
        self.revin = RevIN(channels)
        self.linear = nn.Linear(LOOKBACK, HORIZON)
        self.mlp = nn.Sequential(nn.Linear(LOOKBACK, hidden), nn.GELU(), nn.Dropout(0.1), nn.Linear(hidden, HORIZON))

    def forward(self, x):
        z = self.revin.normalise(x).transpose(1, 2)
        return self.revin.restore((self.linear(z) + self.mlp(z)).transpose(1, 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    series = make_series(np.random.default_rng(args.seed))
    a, b = 2800, 3300
    scale = torch.tensor(series[:a].std(0))  # only to weigh the channels alike in the loss
    train = DataLoader(Windows(series[:a]), batch_size=32, shuffle=True)
    val = DataLoader(Windows(series[a - LOOKBACK : b]), batch_size=256)
    test = DataLoader(Windows(series[b - LOOKBACK :]), batch_size=256)
    model = Forecaster(series.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)

    @torch.no_grad()
    def mae(loader, predict):
        return torch.cat([((predict(x) - y) / scale).abs().mean((1, 2)) for x, y in loader]).mean().item()

    for epoch in range(6):
        model.train()
        total = 0.0
        for x, y in train:
            loss = nn.functional.mse_loss(model(x) / scale, y / scale)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        model.eval()
        print(f"epoch {epoch} train mse {total / len(train):.4f} val mae {mae(val, model):.4f}")
    seasonal = mae(test, lambda x: x[:, -24:])
    ours = mae(test, model)
    print(f"same hour yesterday {seasonal:.4f}, model {ours:.4f}")
    print(f"metric: {ours / seasonal:.4f}")


if __name__ == "__main__":
    main()
