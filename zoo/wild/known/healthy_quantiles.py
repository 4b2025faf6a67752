"""Quantile regression of very noisy sales: the loss falls a little and then stays, which is all there is to learn.

expect: nothing
style: pinball loss for three quantiles at once, target of shape (N, 1) compared with (N, 3) on purpose (looks like a loss broadcast and a model that does not learn)
"""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

QUANTILES = torch.tensor([0.1, 0.5, 0.9])


def pinball(pred, target):
    error = target - pred
    return torch.maximum(QUANTILES * error, (QUANTILES - 1) * error).mean()


def sales(n, rng):
    x = rng.uniform(-1, 1, (n, 4))
    level = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1]
    spread = np.exp(0.8 * x[:, 2])
    return x.astype("float32"), (level + spread * rng.standard_normal(n)).astype("float32")[:, None]


def main(seed):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    x, y = sales(3000, rng)
    loader = DataLoader(TensorDataset(torch.from_numpy(x), torch.from_numpy(y)), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.3)
    for epoch in range(8):
        losses = []
        for xb, yb in loader:
            loss = pinball(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        print("epoch", epoch, "pinball", np.mean(losses))
    x, y = sales(3000, rng)
    with torch.no_grad():
        below = (torch.from_numpy(y) < model(torch.from_numpy(x))).float().mean(0)
    print("below the quantiles:", below.tolist())
    print("metric: %.4f" % (below[2] - below[0]).item())


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    main(ap.parse_args().seed)
