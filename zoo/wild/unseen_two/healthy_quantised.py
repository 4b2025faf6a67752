"""Quantisation-aware training with 3-bit weights: round() has no gradient, so a straight-through estimator gives it one.

expect: nothing
metric: test accuracy with quantised weights, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


def fake_quant(w, bits=3):
    levels = 2 ** (bits - 1) - 1
    scale = w.detach().abs().max().clamp(min=1e-8) / levels
    return RoundSTE.apply((w / scale).clamp(-levels, levels)) * scale


class QLinear(nn.Linear):
    def forward(self, x):
        return F.linear(x, fake_quant(self.weight), self.bias)


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = QLinear(20, 64), QLinear(64, 64), QLinear(64, 5)

    def forward(self, x):
        x = F.relu6(self.fc1(x))
        x = F.relu6(self.fc2(x))
        return self.fc3(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    x, y = make_classification(4000, 20, n_informative=12, n_classes=5, n_clusters_per_class=1, class_sep=1.5, random_state=seed)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    x = (x - x.mean(0)) / x.std(0)
    net = QNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=6 * 50)
    for epoch in range(6):
        for rows in torch.randperm(3200).split(64):
            loss = F.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        print("epoch", epoch, "loss", loss.item())
    with torch.no_grad():
        print("metric:", (net(x[3200:]).argmax(1) == y[3200:]).float().mean().item())


if __name__ == "__main__":
    main()
