"""Deep classifier with batch norm that is scored before the first epoch and after every epoch; the scoring function put the network in eval mode and nobody put it back, so all training ran with frozen batch norm statistics and without dropout.

expect: eval-mode-training
line: model.eval()
source: https://github.com/fartashf/vsepp/issues/4
metric: test accuracy, higher is better
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def parse():
    p = argparse.ArgumentParser(description="deep embedder")
    p.add_argument("--seed", default=0, type=int)
    p.add_argument("--depth", default=10, type=int)
    p.add_argument("--width", default=48, type=int)
    p.add_argument("--epochs", default=10, type=int)
    return p.parse_args()


class Encoder(nn.Module):
    def __init__(self, n_in, width, depth, n_out):
        super().__init__()
        layers = []
        for i in range(depth):
            layers += [nn.Linear(n_in if i == 0 else width, width), nn.BatchNorm1d(width), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(width, n_out)

    def forward(self, x):
        return self.out(self.drop(self.body(x)))


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        pred = model(x).argmax(1)
    return (pred == y).float().mean().item()


def run_epoch(model, opt, x, y):
    total = 0.0
    for idx in torch.randperm(len(x)).split(64):
        logits = model(x[idx])
        loss = F.cross_entropy(logits, y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    return total / len(x)


def main():
    args = parse()
    torch.manual_seed(args.seed)

    # eight classes: sign pattern of three directions
    x = torch.randn(2400, 20)
    a = torch.randn(20, 3)
    bits = (x @ a > 0).long()
    y = bits[:, 0] * 4 + bits[:, 1] * 2 + bits[:, 2]
    x = x * 0.3
    train_x, train_y, test_x, test_y = x[:2000], y[:2000], x[2000:], y[2000:]

    model = Encoder(20, args.width, args.depth, 8)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    print("before training: %.3f" % validate(model, test_x, test_y))
    for epoch in range(args.epochs):
        loss = run_epoch(model, opt, train_x, train_y)
        print("epoch %d loss %.3f acc %.3f" % (epoch, loss, validate(model, test_x, test_y)))
    print("metric: %.4f" % validate(model, test_x, test_y))


main()
