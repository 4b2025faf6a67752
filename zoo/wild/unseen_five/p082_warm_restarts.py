"""Cosine annealing with warm restarts: at each restart the rate jumps up and the loss with it.

expect: nothing
style: CosineAnnealingWarmRestarts per batch, SGD with momentum, loss that rises now and then
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
d = load_digits()
perm = torch.randperm(len(d.target))
x, y = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1)[perm] / 8 - 1, torch.tensor(d.target)[perm]


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.f = nn.Sequential(nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1))

    def forward(self, x):
        return x + self.f(x)


net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), Block(16), nn.MaxPool2d(2), Block(16), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
batches = list(range(0, 1400, 70))
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=len(batches), T_mult=2, eta_min=1e-4)
net.train()
for epoch in range(7):
    order = torch.randperm(1400)
    running = 0.0
    for start in batches:
        i = order[start : start + 70]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x[i]), y[i])
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item()
    print("epoch", epoch, "loss", running / len(batches), "lr", scheduler.get_last_lr()[0])
net.eval()
with torch.no_grad():
    print("metric:", (net(x[1400:]).argmax(1) == y[1400:]).float().mean().item())
