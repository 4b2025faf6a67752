"""Adapting a network to another hospital with its last layer frozen, which is "done" by setting requires_grad on the module.

expect: call-without-effect
line: model.outc.requires_grad = False
source: https://github.com/CSCYQJ/MICCAI23-ProtoContra-SFDA/issues/18
metric: pixel accuracy in the new hospital, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.inc = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())
        self.outc = nn.Conv2d(16, classes, 1)

    def forward(self, x):
        return self.outc(self.inc(x))


def scans(n, gain=1.0, shift=0.0, size=16):
    label = torch.zeros(n, size, size, dtype=torch.long)
    for i in range(n):
        for kind in (1, 2):
            y, x = torch.randint(0, size - 7, (2,)).tolist()
            label[i, y : y + 7, x : x + 7] = kind
    image = label.float() - 1 + 0.25 * torch.randn(n, size, size)
    return (image * gain + shift).unsqueeze(1), label


def source_training(model, epochs=6):
    x, y = scans(200)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        for idx in torch.randperm(len(x)).split(20):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("source epoch", epoch, "loss", loss.item())


def adapt(model, x, epochs=12):
    """Features move towards the prototypes that the last layer keeps: confident and with all classes in use."""
    model.outc.requires_grad = False
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    share = torch.tensor([0.66, 0.15, 0.19])
    for epoch in range(epochs):
        for idx in torch.randperm(len(x)).split(20):
            p = model(x[idx]).softmax(1)
            entropy = -(p * (p + 1e-6).log()).sum(1).mean()
            usage = (share * (share / p.mean((0, 2, 3))).log()).sum()
            loss = entropy + 2 * usage
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("adaptation epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Net()
    source_training(model)
    x, y = scans(200, gain=0.8, shift=0.35)
    adapt(model, x)
    with torch.no_grad():
        print("metric:", (model(x).argmax(1) == y).float().mean().item())
