"""Exponential decay of 0.9 was meant for epochs but is applied after every batch: after one epoch the rate is gone.

expect: scheduler-collapse
or: learning-rate-too-low
line: scheduler.step()
source: https://github.com/NVIDIA/DIGITS/issues/662
metric: test accuracy, higher is better
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer, scheduler, epoch):
    model.train()
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(labels)
    print("epoch %d, lr %.2g, loss %.4f" % (epoch, optimizer.param_groups[0]["lr"], total / len(loader.dataset)))


def validate(model, loader):
    model.eval()
    hits = 0
    with torch.no_grad():
        for images, labels in loader:
            hits += (model(images).argmax(1) == labels).sum().item()
    return hits / len(loader.dataset)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--base-lr", type=float, default=0.15)
    parser.add_argument("--gamma", type=float, default=0.9)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = load_digits(return_X_y=True)
    perm = torch.randperm(len(x))
    x = ((torch.tensor(x, dtype=torch.float32) - 4.9) / 6.0).view(-1, 1, 8, 8)[perm]
    y = torch.tensor(y)[perm]
    train_loader = DataLoader(TensorDataset(x[:1300], y[:1300]), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[1300:], y[1300:]), batch_size=250)

    lenet = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10),
    )
    optimizer = torch.optim.SGD(lenet.parameters(), lr=args.base_lr)
    scheduler = ExponentialLR(optimizer, gamma=args.gamma)
    for epoch in range(args.epochs):
        train(lenet, train_loader, optimizer, scheduler, epoch)
    print("metric: %.4f" % validate(lenet, val_loader))
