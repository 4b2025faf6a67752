"""Mixup: every sample is blended with another of its batch, the labels too, and the training loss stays high.

expect: nothing
metric: test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


def mixup_data(x, y, alpha):
    lam = np.random.beta(alpha, alpha) if alpha > 0 else 1.0
    index = torch.randperm(x.size(0))
    return lam * x + (1 - lam) * x[index], y, y[index], lam


def mixup_criterion(criterion, pred, y_a, y_b, lam):
    return lam * criterion(pred, y_a) + (1 - lam) * criterion(pred, y_b)


class PreActBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x):
        out = self.conv1(torch.relu(self.bn1(x)))
        return x + self.conv2(torch.relu(self.bn2(out)))


class ResNet(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.layers = nn.Sequential(PreActBlock(channels), nn.MaxPool2d(2), PreActBlock(channels))
        self.fc = nn.Linear(channels * 16, 10)

    def forward(self, x):
        return self.fc(torch.relu(self.layers(self.stem(x))).flatten(1))


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--alpha", type=float, default=0.5)
args = parser.parse_args()
torch.manual_seed(args.seed)
np.random.seed(args.seed)
digits = load_digits()
x, y = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 8 - 1, torch.tensor(digits.target)
order = torch.randperm(len(x))
x, y = x[order], y[order]
loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=40, shuffle=True)
net = ResNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [6, 8], gamma=0.1)
for epoch in range(9):
    net.train()
    total = 0.0
    for xb, yb in loader:
        mixed, y_a, y_b, lam = mixup_data(xb, yb, args.alpha)
        loss = mixup_criterion(criterion, net(mixed), y_a, y_b, lam)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    print("epoch %d loss %.3f" % (epoch, total / len(loader)))
net.eval()
with torch.no_grad():
    print("metric:", (net(x[1400:]).argmax(1) == y[1400:]).float().mean().item())
