"""House-price regression: raw units in, raw prices out; both scalers are buffers inside the model.

expect: nothing
style: raw features of very different size and targets of hundreds of thousands, standardised inside the module
"""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def houses(n, rng):
    area = rng.gamma(9, 15, n) + 20
    year = rng.integers(1900, 2024, n)
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.8, n)), 1, 12)
    dist = rng.exponential(8000, n)
    garden = rng.binomial(1, 0.4, n) * rng.gamma(2, 120, n)
    price = 40000 + 2900 * area * np.exp(-dist / 20000) + 900 * np.maximum(year - 1950, 0)
    price = price + 60 * garden + 4000 * rooms + rng.normal(0, 12000, n)
    x = np.stack([area, year, rooms, dist, garden], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(price, dtype=torch.float32)


class Standardise(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("std", torch.ones(size))

    def fit(self, x):
        self.mean.copy_(x.mean(0))
        self.std.copy_(x.std(0))
        return self

    def forward(self, x):
        return (x - self.mean) / self.std

    def inverse(self, z):
        return z * self.std + self.mean


class PriceModel(nn.Module):
    """Takes and returns physical units; `loss` is measured in standardised ones."""

    def __init__(self, n_features, width=64):
        super().__init__()
        self.x_scale, self.y_scale = Standardise(n_features), Standardise(())
        self.net = nn.Sequential(
            nn.Linear(n_features, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.y_scale.inverse(self.net(self.x_scale(x)).squeeze(-1))

    def loss(self, x, y):
        return nn.functional.huber_loss(self.y_scale(self(x)), self.y_scale(y))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    data = TensorDataset(*houses(6000, np.random.default_rng(seed)))
    train, test = random_split(data, [5000, 1000])
    x_train, y_train = train[:]
    model = PriceModel(5)
    model.x_scale.fit(x_train)
    model.y_scale.fit(y_train)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
    for epoch in range(10):
        model.train()
        total = 0.0
        for x, y in DataLoader(train, batch_size=64, shuffle=True):
            loss = model.loss(x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        scheduler.step()
        model.eval()
        with torch.no_grad():
            x, y = test[:]
            pred = model(x)
            mae = (pred - y).abs().mean().item()
            r2 = 1 - ((pred - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
        print(f"epoch {epoch} loss {total / len(train):.4f} MAE {mae:,.0f}")
    print(f"metric: {r2.item():.4f}")


if __name__ == "__main__":
    main()
