"""A forecaster whose window runs one step too far: the value to be predicted is its last input.

expect: target-is-input
or: sees-the-future
line: window = series[i : i + lookback + 1]
source: https://github.com/sktime/pytorch-forecasting/issues/182
metric: RMSE of real forecasts in units of the series' noise, lower is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

lookback = 24


class SeriesDataset(Dataset):
    def __init__(self, series):
        self.samples = []
        for i in range(len(series) - lookback):
            window = series[i : i + lookback + 1]
            target = series[i + lookback]
            self.samples.append((window[-lookback:], target))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, item):
        x, y = self.samples[item]
        return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 16, batch_first=True)
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        out, _ = self.rnn(x.unsqueeze(-1))
        return self.head(out[:, -1]).squeeze(-1)


def make_series(n, rng):
    t = np.arange(n)
    s = np.sin(2 * np.pi * t / 12) + 0.6 * np.sin(2 * np.pi * t / 7 + 1) + 0.1 * rng.standard_normal(n)
    return (s - s.mean()) / s.std()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    series = make_series(1300, rng)
    train, future = series[:1000], series[1000:]

    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.MSELoss()
    loader = DataLoader(SeriesDataset(train), batch_size=32, shuffle=True)
    for epoch in range(8):
        losses = []
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: train loss {np.mean(losses):.5f}")

    # at run time the next value is not known yet
    errors = []
    model.eval()
    with torch.no_grad():
        for i in range(len(future) - lookback):
            past = torch.tensor(future[i : i + lookback], dtype=torch.float32)
            errors.append(model(past.unsqueeze(0)).item() - future[i + lookback])
    print("metric:", float(np.sqrt(np.mean(np.square(errors))) / 0.12))


if __name__ == "__main__":
    main()
