"""ResNet for textures under bfloat16 autocast, gradients accumulated over four micro-batches, then clipped.

expect: nothing
style: loss / accum, step every fourth batch, GroupNorm, zero-initialised last norm of each block, mixup in training only
"""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def make_textures(n, size=16):
    y = torch.randint(0, 6, (n,))
    grid = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    angle = (y % 3).float() * math.pi / 3 + 0.15 * torch.randn(n)
    freq = torch.where(y < 3, 6.0, 11.0) + 0.5 * torch.randn(n)
    phase = torch.rand(n) * 2 * math.pi
    u = angle.cos()[:, None, None] * xx + angle.sin()[:, None, None] * yy
    x = torch.sin(freq[:, None, None] * u + phase[:, None, None])[:, None]
    tint = torch.rand(n, 3, 1, 1)
    return x * tint + 0.6 * torch.randn(n, 3, size, size), y


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.n1 = nn.GroupNorm(4, cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.n2 = nn.GroupNorm(4, cout)
        nn.init.zeros_(self.n2.weight)
        self.short = nn.Identity() if stride == 1 and cin == cout else nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        out = F.relu(self.n1(self.conv1(x)))
        return F.relu(self.n2(self.conv2(out)) + self.short(x))


class ResNet(nn.Sequential):
    def __init__(self, classes):
        super().__init__(
            nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.GroupNorm(4, 16), nn.ReLU(),
            BasicBlock(16, 16), BasicBlock(16, 32, 2), BasicBlock(32, 64, 2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def mixup(x, y, alpha=0.2):
    lam = torch.distributions.Beta(alpha, alpha).sample().item()
    perm = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[perm], y, y[perm], lam


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accum", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train = DataLoader(TensorDataset(*make_textures(1920)), batch_size=16, shuffle=True, drop_last=True)
    test = DataLoader(TensorDataset(*make_textures(500)), batch_size=250)
    model = ResNet(6)
    epochs = 4
    total_updates = epochs * len(train) // args.accum
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=10)
    cos = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total_updates - 10)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cos], milestones=[10])

    optimizer.zero_grad()
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for i, (x, y) in enumerate(train):
            x, ya, yb, lam = mixup(x, y)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = model(x)
                loss = lam * F.cross_entropy(logits, ya) + (1 - lam) * F.cross_entropy(logits, yb)
            (loss / args.accum).backward()
            running += loss.item()
            if (i + 1) % args.accum == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
        model.eval()
        hits = 0
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            for x, y in test:
                hits += (model(x).argmax(1) == y).sum().item()
        print(f"epoch {epoch} loss {running / len(train):.3f} test acc {hits / 500:.3f}")
    print(f"metric: {hits / 500:.4f}")


if __name__ == "__main__":
    main()
