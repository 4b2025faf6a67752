"""Segmentation of thin lines under bfloat16 autocast on a CPU, with focal and Dice terms and few positive pixels.

expect: nothing
style: autocast around the network only, losses in float32, group norm, class imbalance treated by the loss
metric: F1 of road pixels, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


def tiles(n, side=32):
    x, y = torch.zeros(n, 1, side, side), torch.zeros(n, 1, side, side)
    line = torch.arange(side)
    for i in range(n):
        for _ in range(random.randint(1, 2)):
            slope, off = random.uniform(-1, 1), random.randint(4, side - 5)
            rows = (off + slope * (line - side // 2)).round().long()
            ok = (rows >= 0) & (rows < side)
            if random.random() < 0.5:
                y[i, 0, rows[ok], line[ok]] = 1
            else:
                y[i, 0, line[ok], rows[ok]] = 1
    x = 0.9 * y + 0.35 * torch.randn_like(y) + 0.4 * torch.rand(n, 1, 1, 1)
    return x, y


class Net(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        conv = lambda i, o, d=1: nn.Sequential(
            nn.Conv2d(i, o, 3, padding=d, dilation=d), nn.GroupNorm(4, o), nn.SiLU()
        )
        self.net = nn.Sequential(
            conv(1, c), conv(c, c, 2), conv(c, c, 4), conv(c, c), nn.Conv2d(c, 1, 1)
        )
        nn.init.constant_(self.net[-1].bias, -2.5)

    def forward(self, x):
        return self.net(x)


def criterion(logits, y):
    bce = F.binary_cross_entropy_with_logits(logits, y, reduction="none")
    p = torch.sigmoid(logits)
    focal = (bce * torch.where(y > 0, 1 - p, p) ** 2).mean() * 10
    dice = 1 - (2 * (p * y).sum((1, 2, 3)) + 1) / ((p + y).sum((1, 2, 3)) + 1)
    return focal + dice.mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    (x, y), (xt, yt) = tiles(400), tiles(100)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=args.epochs * 25)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(x)).split(16):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = model(x[idx])
            loss = criterion(logits.float(), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            hit = model(xt) > 0
        f1 = (2 * (hit & (yt > 0)).sum() / (hit.sum() + yt.sum())).item()
        print(f"epoch {epoch} loss {loss.item():.4f} f1 {f1:.4f}")
    print("metric:", f1)


if __name__ == "__main__":
    main()
