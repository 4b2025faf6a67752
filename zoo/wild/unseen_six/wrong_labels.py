"""Four labels of ten are wrong: two networks choose for each other the samples that look right, and the training accuracy stays low.

expect: nothing
style: co-teaching, growing share of dropped samples, two models and two optimizers
metric: accuracy on clean test labels, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def make_net():
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 10))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=0.4)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(x))
    x, y = torch.tensor(x, dtype=torch.float32)[order] / 16, torch.tensor(y)[order]
    x_train, x_test, y_test = x[:1400], x[1400:], y[1400:]
    spoiled = torch.rand(1400) < args.noise
    y_train = torch.where(spoiled, torch.randint(10, (1400,)), y[:1400])
    nets = [make_net(), make_net()]
    optimizers = [torch.optim.Adam(net.parameters(), lr=2e-3) for net in nets]
    for epoch in range(args.epochs):
        keep = 1 - args.noise * min(1.0, epoch / 6)
        seen_right = 0
        for idx in torch.randperm(1400).split(70):
            xb, yb = x_train[idx], y_train[idx]
            losses = [F.cross_entropy(net(xb), yb, reduction="none") for net in nets]
            k = max(1, int(keep * len(idx)))
            chosen = [loss.detach().argsort()[:k] for loss in losses]
            for loss, optimizer, other in zip(losses, optimizers, reversed(chosen)):
                optimizer.zero_grad()
                loss[other].mean().backward()
                optimizer.step()
            seen_right += (~spoiled[idx][chosen[0]]).float().mean().item()
        if epoch % 4 == 0:
            print(f"epoch {epoch} kept {keep:.2f} of which clean {seen_right / 20:.3f}")
    for net in nets:
        net.eval()
    with torch.no_grad():
        p = sum(net(x_test).softmax(1) for net in nets)
        print("metric:", (p.argmax(1) == y_test).float().mean().item())


if __name__ == "__main__":
    main()
