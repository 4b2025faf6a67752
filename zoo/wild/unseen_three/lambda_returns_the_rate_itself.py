"""The lambda of LambdaLR gives the learning rate, not a factor of it: the rate is squared.

expect: learning-rate-too-low
line: lambda step: args.lr * (1.0 + args.lr_gamma * step)
source: https://github.com/lhoyer/MIC/issues/60
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset, random_split


class LeNetish(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(24 * 16, 64), nn.ReLU(inplace=True), nn.Linear(64, classes))

    def forward(self, x):
        return self.classifier(self.features(x))


def evaluate(model, loader):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
            seen += len(y)
    return right / seen


def main(args):
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(x / 8 - 1, dtype=torch.float32).view(-1, 1, 8, 8), torch.tensor(y))
    train_set, test_set = random_split(data, [1400, 397])
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, 256)

    model = LeNetish()
    optimizer = SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=args.wd, nesterov=True)
    lr_scheduler = LambdaLR(optimizer, lambda step: args.lr * (1.0 + args.lr_gamma * step) ** (-args.lr_decay))
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        model.train()
        for images, target in train_loader:
            loss = criterion(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            lr_scheduler.step()
        print("epoch", epoch, "loss", round(loss.item(), 4), "test", round(evaluate(model, test_loader), 4))

    print("metric:", evaluate(model, test_loader))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--lr-gamma", type=float, default=0.001)
    p.add_argument("--lr-decay", type=float, default=0.75)
    p.add_argument("--wd", type=float, default=1e-4)
    main(p.parse_args())
