"""Quantile regression of train delays on a table of numbers and categories; three quantiles from one network.

expect: nothing
style: pinball loss, predictions (N, 3) against targets (N, 1) broadcast on purpose, embeddings for stations, stopped when the validation loss has not improved for five epochs
"""
import argparse

import torch
from torch import nn

QUANTILES = torch.tensor([0.1, 0.5, 0.9])


def timetable(n, station_effect):
    station = torch.randint(0, 15, (n,))
    hour = torch.rand(n) * 24
    rain = torch.rand(n)
    base = 2 + station_effect[station] + 3 * torch.exp(-((hour - 8) / 2) ** 2) + 2 * torch.exp(-((hour - 17) / 2) ** 2)
    spread = 0.5 + 1.5 * rain
    delay = base + spread * torch.randn(n)
    numbers = torch.stack([torch.sin(hour / 24 * 6.2832), torch.cos(hour / 24 * 6.2832),
                           (hour - 12) / 7, (rain - 0.5) * 3.4], 1)
    return station, numbers, delay.unsqueeze(1)


class DelayNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.station = nn.Embedding(15, 6)
        self.net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, station, numbers):
        return self.net(torch.cat([self.station(station), numbers], 1))


def pinball(pred, target):
    diff = target - pred
    return torch.maximum(QUANTILES * diff, (QUANTILES - 1) * diff).mean()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    torch.manual_seed(p.parse_args().seed)
    effect = torch.randn(15)
    train, val, test = timetable(3000, effect), timetable(600, effect), timetable(2000, effect)
    shift, scale = train[2].mean(), train[2].std()
    norm = lambda d: (d[0], d[1], (d[2] - shift) / scale)
    train, val, test = norm(train), norm(val), norm(test)

    model = DelayNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    best, waited = float("inf"), 0
    for epoch in range(30):
        for idx in torch.randperm(3000).split(100):
            loss = pinball(model(train[0][idx], train[1][idx]), train[2][idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            val_loss = pinball(model(val[0], val[1]), val[2]).item()
        best, waited = (val_loss, 0) if val_loss < best else (best, waited + 1)
        if waited == 5:
            break
    print(f"stopped after epoch {epoch + 1}, validation {best:.4f}")
    with torch.no_grad():
        q = model(test[0], test[1])
        covered = ((test[2] > q[:, :1]) & (test[2] < q[:, 2:])).float().mean().item()
        unconditional = pinball(torch.quantile(train[2], QUANTILES)[None], test[2]).item()
        test_loss = pinball(q, test[2]).item()
    print(f"80% interval covers {covered:.3f}; without features the loss is {unconditional:.4f}")
    print(f"metric: {test_loss:.4f}")


if __name__ == "__main__":
    main()
