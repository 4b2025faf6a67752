"""Three quantiles of a skewed target at once; the pinball loss cannot reach zero.

expect: nothing
style: pinball loss, (n, 1) against (n, 3) on purpose, StepLR
metric: how far the share of points below each quantile is off, lower is better
"""

import argparse

import numpy as np
import torch
from torch import nn

QUANTILES = torch.tensor([0.1, 0.5, 0.9])


def pinball(prediction, target):
    error = target - prediction
    return torch.maximum(QUANTILES * error, (QUANTILES - 1) * error).mean()


def flats(n, rng):
    size = rng.uniform(-1, 1, (n, 3))
    spread = np.exp(0.5 + 0.8 * size[:, :1])
    price = 2 * size[:, 1:2] + size[:, 2:3] ** 2 + spread * rng.gamma(2.0, 0.4, (n, 1))
    return torch.tensor(size, dtype=torch.float32), torch.tensor(price, dtype=torch.float32)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)
rng = np.random.default_rng(seed)
x, y = flats(4000, rng)
x_test, y_test = flats(3000, rng)
model = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 8, gamma=0.3)
for epoch in range(24):
    for idx in torch.randperm(len(x)).split(100):
        loss = pinball(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 4 == 0:
        print("epoch", epoch, "pinball", loss.item())
with torch.no_grad():
    covered = (y_test <= model(x_test)).float().mean(0)
print("covered", covered.tolist())
print("metric:", (covered - QUANTILES).abs().max().item())
