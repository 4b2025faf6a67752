"""A learning-rate finder raises the rate until the loss explodes, puts the weights back and then trains with what it found.

expect: nothing
style: exponential sweep on a copy of the state, smoothed loss, restart from the saved state
metric: test accuracy, higher is better
"""

import argparse
import copy
import math

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class LRFinder:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion

    def range_test(self, loader, start=1e-5, end=1.0, steps=80):
        saved = copy.deepcopy(self.model.state_dict()), copy.deepcopy(self.optimizer.state_dict())
        history, smooth, best, batches = [], 0.0, math.inf, iter(loader)
        for i in range(steps):
            lr = start * (end / start) ** (i / (steps - 1))
            for group in self.optimizer.param_groups:
                group["lr"] = lr
            try:
                x, y = next(batches)
            except StopIteration:
                batches = iter(loader)
                x, y = next(batches)
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            smooth = 0.8 * smooth + 0.2 * loss.item()
            value = smooth / (1 - 0.8 ** (i + 1))
            history.append((lr, value))
            best = min(best, value)
            if value > 4 * best:
                break
        self.model.load_state_dict(saved[0])
        self.optimizer.load_state_dict(saved[1])
        return history

    @staticmethod
    def suggest(history):
        lowest = min(range(len(history)), key=lambda i: history[i][1])
        return history[lowest][0] / 5


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(x))
    x, y = torch.tensor(x, dtype=torch.float32)[order] / 16, torch.tensor(y)[order]
    loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    lr = LRFinder.suggest(LRFinder(model, optimizer, criterion).range_test(loader))
    print("suggested rate", lr)
    for group in optimizer.param_groups:
        group["lr"] = lr
    for epoch in range(8):
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())
    with torch.no_grad():
        print("metric:", (model(x[1400:]).argmax(1) == y[1400:]).float().mean().item())
