"""Mixup, label smoothing and one cycle: the training loss stays high all the way, and the network is good.

expect: nothing
style: regularised recipe, RandAugment-like shifts, scheduler per batch
metric: test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=9)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)

d = load_digits()
order = torch.randperm(len(d.target))
x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1)[order] / 16
y = torch.tensor(d.target)[order]
net = nn.Sequential(
    nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.3), nn.Linear(512, 10),
)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
batches = len(torch.arange(1400).split(50))
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, epochs=args.epochs, steps_per_epoch=batches)
for epoch in range(args.epochs):
    net.train()
    total = 0.0
    for i in torch.randperm(1400).split(50):
        lam = float(rng.beta(0.4, 0.4))
        j = i[torch.randperm(len(i))]
        mixed = torch.roll(lam * x[i] + (1 - lam) * x[j], int(rng.integers(-1, 2)), 3)
        out = net(mixed)
        loss = lam * criterion(out, y[i]) + (1 - lam) * criterion(out, y[j])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    print(f"epoch {epoch} train loss {total / batches:.3f}")
net.eval()
with torch.no_grad():
    print("metric:", (net(x[1400:]).argmax(1) == y[1400:]).float().mean().item())
