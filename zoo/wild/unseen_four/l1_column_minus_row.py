"""L1Loss gets predictions of shape (500, 1) and targets of shape (500,): all pairs are compared.

expect: loss-broadcast
line: criterion(pred, d[:, 2])
source: https://github.com/pytorch/pytorch/issues/63546
metric: test mean absolute error, lower is better
"""
import argparse
import warnings

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")


def make(n):
    data = torch.randn(n, 2)
    y = torch.sin(data[:, 0] * data[:, 1]).unsqueeze(1)
    return torch.cat([data, y], dim=1)


def build():
    layers = [nn.Linear(2, 64), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Linear(64, 64), nn.ReLU()]
    layers.append(nn.Linear(64, 1))
    return nn.Sequential(*layers)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", default=0, type=int)
    ap.add_argument("--epochs", default=15, type=int)
    opts = ap.parse_args()
    torch.manual_seed(opts.seed)

    train, test = make(20000), make(4000)
    model = build()
    criterion = nn.L1Loss()
    opt = torch.optim.Adam(model.parameters(), 0.002)
    dl = DataLoader(train, batch_size=500, shuffle=True)

    for epoch in range(opts.epochs):
        total = 0.0
        for d in dl:
            pred = model(d[:, :2])
            loss = criterion(pred, d[:, 2])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print("epoch:[{}], loss: {:.5f}".format(epoch, total / len(dl)))

    with torch.no_grad():
        error = (model(test[:, :2]).squeeze(1) - test[:, 2]).abs().mean()
    print("metric:", error.item())


if __name__ == "__main__":
    main()
