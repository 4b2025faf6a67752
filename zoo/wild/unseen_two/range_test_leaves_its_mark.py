"""The learning rate finder drives the rate up until the loss explodes, and training goes on with the weights it left.

expect: diverged
or: learning-rate-too-high, exploding-gradient
line: lr = find_lr(model, optimizer, criterion, train_loader)
source: https://github.com/davidtvs/pytorch-lr-finder/issues/11
metric: test accuracy, higher is better
"""

import argparse
import copy

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Sequential(nn.Linear(144, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def find_lr(model, optimizer, criterion, loader, start=1e-3, end=50.0, num_iter=90, diverge=6.0):
    """Raises the rate from `start` to `end` by the same factor in each step; a tenth of the best one is returned."""
    batches = iter([batch for _ in range(4) for batch in loader])
    factor = (end / start) ** (1 / num_iter)
    lr, best, best_lr = start, float("inf"), start
    for _ in range(num_iter):
        for group in optimizer.param_groups:
            group["lr"] = lr
        x, y = next(batches)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < best:
            best, best_lr = loss.item(), lr
        if loss.item() > diverge * best:
            print("Stopping early, the loss has diverged")
            break
        lr *= factor
    return best_lr / 10


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 8 - 1
labels = torch.tensor(digits.target)
order = torch.randperm(1797)
images, labels = images[order], labels[order]
train_loader = DataLoader(TensorDataset(images[:1400], labels[:1400]), batch_size=40, shuffle=True)

model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
lr = find_lr(model, optimizer, criterion, train_loader)
print("suggested lr", lr)
optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
for epoch in range(8):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item())
model.eval()
with torch.no_grad():
    print("metric:", (model(images[1400:]).argmax(1) == labels[1400:]).float().mean().item())
