"""The weights themselves are bfloat16: the small steps of fine-tuning are rounded away when they are added.

expect: update-below-precision
line: .to(torch.bfloat16)
source: https://github.com/pytorch/ao/pull/1124
metric: test accuracy on the new domain, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def mlp():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


def batches(x, y, size, steps):
    for _ in range(steps):
        pick = torch.randint(0, len(x), (size,))
        yield x[pick], y[pick]


def accuracy(model, x, y):
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        return (model(x).argmax(1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=1e-4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 8.0 - 1.0, dtype=torch.float32), torch.tensor(y)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    upright, turned = x, x.view(-1, 8, 8).flip(1).reshape(-1, 64)

    # base model in full precision
    base = mlp()
    optimizer = torch.optim.Adam(base.parameters(), lr=2e-3)
    for xb, yb in batches(upright[:1300], y[:1300], 64, 200):
        loss = F.cross_entropy(base(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("base:", accuracy(base, upright[1300:], y[1300:]), "turned:", accuracy(base, turned[1300:], y[1300:]))

    # careful fine-tuning on the pictures that stand on their heads
    model = mlp()
    model.load_state_dict(base.state_dict())
    model = model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for step, (xb, yb) in enumerate(batches(turned[:1300], y[:1300], 64, 1500)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(xb)
        loss = F.cross_entropy(logits.float(), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 300 == 0:
            print("step", step, "loss", round(loss.item(), 4))

    print("metric:", accuracy(model, turned[1300:], y[1300:]))


if __name__ == "__main__":
    main()
