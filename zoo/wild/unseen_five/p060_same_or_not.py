"""Metric learning with triplets: the loss is often exactly zero, and judged by nearest neighbours.

expect: nothing
style: shared network called three times, TripletMarginLoss, k nearest neighbours of new classes
metric: share of right nearest neighbours among classes never trained on, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=1)


def triplets(x, by_class, n):
    a, p, q = [], [], []
    for _ in range(n):
        i, j = torch.randperm(len(by_class))[:2].tolist()
        same, other = by_class[i], by_class[j]
        k = torch.randint(len(same), (2,))
        a.append(same[k[0]]), p.append(same[k[1]]), q.append(other[torch.randint(len(other), ())])
    return (x[torch.stack(t)] for t in (a, p, q))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
    by_class = [(y == c).nonzero().flatten() for c in range(7)]
    net = Embed()
    criterion = nn.TripletMarginLoss(margin=0.4)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(250):
        anchor, positive, negative = triplets(x, by_class, 48)
        loss = criterion(net(anchor), net(positive), net(negative))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print("step", step, "triplet loss", loss.item())
    new = y >= 7
    with torch.no_grad():
        e = net(x[new])
    d = torch.cdist(e, e).fill_diagonal_(9)
    print("metric:", (y[new][d.argmin(1)] == y[new]).float().mean().item())


if __name__ == "__main__":
    main()
