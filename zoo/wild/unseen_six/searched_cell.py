"""The training script of a searched cell was uploaded with shuffle=False, and the samples lie class by class.

expect: unshuffled-data
line: shuffle=False
source: https://github.com/MAC-AutoML/rethinking_performance_estimation_in_NAS/issues/17
metric: top-1 accuracy on the test set, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset

OPS = {
    "conv": lambda c: nn.Sequential(nn.Conv2d(c, c, 3, padding=1, bias=False), nn.ReLU()),
    "pool": lambda c: nn.AvgPool2d(3, stride=1, padding=1),
    "skip": lambda c: nn.Identity(),
}


class Cell(nn.Module):
    def __init__(self, c, genotype):
        super().__init__()
        self.edges = nn.ModuleList([OPS[op](c) for op in genotype])

    def forward(self, x):
        return x + sum(edge(x) for edge in self.edges) / len(self.edges)


class AugmentCNN(nn.Module):
    def __init__(self, c, genotype, layers=2):
        super().__init__()
        self.stem = nn.Conv2d(1, c, 3, padding=1)
        self.cells = nn.Sequential(*[Cell(c, genotype) for _ in range(layers)])
        self.linear = nn.Linear(c * 16, 10)

    def forward(self, x):
        return self.linear(nn.functional.max_pool2d(self.cells(self.stem(x)), 2).flatten(1))


class SortedDigits(Dataset):
    """Reads one file per class, as they lie on the disk."""

    def __init__(self, part):
        digits = load_digits()
        rng = np.random.default_rng(1)
        test = rng.permutation(len(digits.target))[:400]
        keep = np.setdiff1d(np.arange(len(digits.target)), test) if part == "train" else test
        keep = keep[np.argsort(digits.target[keep], kind="stable")]
        self.x, self.y = digits.images[keep].astype(np.float32) / 16, digits.target[keep]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i][None], self.y[i]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    config = parser.parse_args()
    torch.manual_seed(config.seed)
    train_loader = DataLoader(SortedDigits("train"), batch_size=32, shuffle=False)
    valid_loader = DataLoader(SortedDigits("test"), batch_size=100, shuffle=False)
    model = AugmentCNN(12, ["conv", "conv", "pool", "skip"])
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, weight_decay=3e-4)
    lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.epochs)
    for epoch in range(config.epochs):
        model.train()
        losses = []
        for X, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(X), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
        lr_scheduler.step()
        print("Train: [{}/{}] loss {:.3f}".format(epoch + 1, config.epochs, np.mean(losses)))
    model.eval()
    with torch.no_grad():
        print("metric:", sum((model(X).argmax(1) == y).sum().item() for X, y in valid_loader) / 400)


if __name__ == "__main__":
    main()
