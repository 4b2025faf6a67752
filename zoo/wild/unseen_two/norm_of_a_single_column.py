"""Each numeric column gets a projection with LayerNorm over its last dimension, which has size 1: the column becomes 0.

expect: input-ignored
or: input-collapsed
line: self.norm = nn.LayerNorm(1)
source: https://github.com/pytorch/pytorch/issues/108956
metric: root mean squared error on test days, lower is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn


class NumberInput(nn.Module):
    """Normalises a numeric column, then embeds it."""

    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(1)
        self.proj = nn.Linear(1, size)

    def forward(self, column):
        return torch.relu(self.proj(self.norm(column)))


class Combiner(nn.Module):
    def __init__(self, columns, size=12):
        super().__init__()
        self.encoders = nn.ModuleDict({name: NumberInput(size) for name in columns})
        self.fc = nn.Sequential(nn.Linear(size * len(columns), 32), nn.ReLU(), nn.Dropout(0.05), nn.Linear(32, 1))

    def forward(self, batch):
        return self.fc(torch.cat([encoder(batch[name]) for name, encoder in self.encoders.items()], dim=1))


def bike_days(n, rng):
    temperature, wind = rng.normal(15, 8, n), rng.gamma(2, 2, n)
    hours, price = rng.integers(6, 22, n).astype(float), rng.uniform(1, 4, n)
    rides = 3 + 0.25 * temperature - 0.3 * wind - 0.05 * (hours - 14) ** 2 - 0.8 * price + rng.normal(0, 0.4, n)
    table = {"temperature": temperature / 10, "wind": wind / 4, "hours": hours / 10, "price": price}
    return {k: torch.tensor(v, dtype=torch.float32)[:, None] for k, v in table.items()}, torch.tensor(rides, dtype=torch.float32)[:, None]


def main(seed):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    table, rides = bike_days(1500, rng)
    test_table, test_rides = bike_days(400, rng)
    model = Combiner(list(table))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_fn = nn.MSELoss()
    for epoch in range(15):
        model.train()
        total = 0.0
        for rows in torch.randperm(1500).split(50):
            optimizer.zero_grad()
            loss = loss_fn(model({k: v[rows] for k, v in table.items()}), rides[rows])
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: training loss {total / 30:.4f}")
    model.eval()
    with torch.no_grad():
        return loss_fn(model(test_table), test_rides).sqrt().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    print("metric:", main(parser.parse_args().seed))
