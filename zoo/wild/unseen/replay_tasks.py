"""Continual learning on the digits: pairs of digits one after the other, with a small replay memory against forgetting.

expect: nothing
style: the training data is ordered by task by design and the loss jumps at each new pair; all five pairs share one output layer, and classes not met yet are masked out of the loss
"""
import argparse
import random

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Reservoir:
    def __init__(self, capacity):
        self.capacity, self.seen, self.items = capacity, 0, []

    def add(self, x, y):
        for item in zip(x, y):
            self.seen += 1
            if len(self.items) < self.capacity:
                self.items.append(item)
            elif (i := random.randrange(self.seen)) < self.capacity:
                self.items[i] = item

    def sample(self, n):
        x, y = zip(*random.sample(self.items, min(n, len(self.items))))
        return torch.stack(x), torch.stack(y)


def masked_loss(logits, y, known):
    return F.cross_entropy(logits.masked_fill(~known, float("-inf")), y)


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--seed", type=int, default=0)
    seed = cli.parse_args().seed
    torch.manual_seed(seed)
    random.seed(seed)
    d = load_digits()
    x = torch.tensor(d.data, dtype=torch.float32) / 8 - 1
    y = torch.tensor(d.target)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    x_tr, y_tr, x_te, y_te = x[:1300], y[:1300], x[1300:], y[1300:]

    model = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.8)
    memory = Reservoir(250)
    known = torch.zeros(10, dtype=torch.bool)
    for task in range(5):
        pair = (y_tr == 2 * task) | (y_tr == 2 * task + 1)
        known[2 * task:2 * task + 2] = True
        xs, ys = x_tr[pair], y_tr[pair]
        for epoch in range(4):
            for idx in torch.randperm(len(xs)).split(16):
                loss = masked_loss(model(xs[idx]), ys[idx], known)
                if memory.items:
                    xm, ym = memory.sample(48)
                    loss = loss + masked_loss(model(xm), ym, known)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if epoch == 0:
                    memory.add(xs[idx], ys[idx])
        with torch.no_grad():
            met = known[y_te]
            acc = (model(x_te).masked_fill(~known, float("-inf")).argmax(1) == y_te)[met].float().mean().item()
        print(f"after pair {task}: {acc:.3f} on all digits met so far")
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    main()
