"""A network with weights of +1 and -1: a custom autograd function passes gradients straight through, and hidden weights are clipped.

expect: nothing
style: torch.autograd.Function with a written backward, clamp of the weights after each step
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1)


class BinaryLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(o, i).uniform_(-0.1, 0.1))
        self.scale = i**-0.5

    def forward(self, x):
        return self.scale * (x @ Sign.apply(self.weight).T)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(x))
    x, y = torch.tensor(x, dtype=torch.float32)[order] / 8 - 1, torch.tensor(y)[order]
    net = nn.Sequential(BinaryLinear(64, 128), nn.BatchNorm1d(128), nn.Hardtanh(), BinaryLinear(128, 128), nn.BatchNorm1d(128), nn.Hardtanh(), BinaryLinear(128, 10), nn.BatchNorm1d(10))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        net.train()
        for idx in torch.randperm(1400).split(50):
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for m in net.modules():
                    if isinstance(m, BinaryLinear):
                        m.weight.clamp_(-1, 1)
        print("epoch", epoch, "loss", loss.item())
    net.eval()
    with torch.no_grad():
        print("metric:", (net(x[1400:]).argmax(1) == y[1400:]).float().mean().item())
