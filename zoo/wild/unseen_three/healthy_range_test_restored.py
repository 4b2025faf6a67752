"""A learning-rate range test that blows up on purpose, puts everything back, and then trains with the rate it found.

expect: nothing
style: invites 'diverged' and 'learning rate too high': the first hundred steps raise the rate until the loss explodes on a throwaway copy, the real training starts from fresh weights
"""
import argparse
import copy
import math

import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


class LRFinder:
    """Runs on a deep copy, so that neither weights nor batch statistics of the model are touched."""

    def __init__(self, model, criterion, start=1e-4, end=10.0, num=100):
        self.model, self.criterion = copy.deepcopy(model), criterion
        self.start, self.end, self.num = start, end, num

    def range_test(self, loader):
        opt = torch.optim.SGD(self.model.parameters(), lr=self.start, momentum=0.9)
        mult = (self.end / self.start) ** (1 / (self.num - 1))
        history, smooth, best, it = [], 0.0, math.inf, iter(loader)
        self.model.train()
        for step in range(self.num):
            try:
                x, y = next(it)
            except StopIteration:
                it = iter(loader)
                x, y = next(it)
            loss = self.criterion(self.model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            smooth = 0.9 * smooth + 0.1 * loss.item()
            debiased = smooth / (1 - 0.9 ** (step + 1))
            history.append((opt.param_groups[0]["lr"], debiased))
            best = min(best, debiased)
            if step > 10 and debiased > 4 * best:
                print("range test stopped early at lr %.3g" % history[-1][0])
                break
            opt.param_groups[0]["lr"] *= mult
        self.history = history
        lowest = min(history, key=lambda p: p[1])[0]
        return lowest / 10


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    X, y = make_classification(6000, 20, n_informative=8, n_redundant=2, n_classes=4, n_clusters_per_class=1,
                               class_sep=1.3, flip_y=0.02, random_state=args.seed)
    Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.25, random_state=args.seed)
    mu, sd = Xa.mean(0), Xa.std(0)
    ds = lambda a, b: TensorDataset(torch.tensor((a - mu) / sd, dtype=torch.float32), torch.tensor(b))
    train_loader = DataLoader(ds(Xa, ya), batch_size=64, shuffle=True)
    test_loader = DataLoader(ds(Xb, yb), batch_size=500)

    model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
    criterion = nn.CrossEntropyLoss()
    lr = LRFinder(model, criterion).range_test(train_loader)
    print("suggested lr %.4f" % lr)

    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        model.train()
        for x, t in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), t)
            loss.backward()
            optimizer.step()
        scheduler.step()
        print("epoch %d loss %.4f test acc %.4f" % (epoch + 1, loss.item(), evaluate(model, test_loader)))
    print("metric: %.4f" % evaluate(model, test_loader))


if __name__ == "__main__":
    main()
