"""Class maps come out of a pixel-wise network as (batch, pixels, classes) and are viewed as (batch, classes, height, width).

expect: axes-scrambled
or: target-misaligned
line: maps = probabilities.view(b, self.classes, h, w)
source: https://github.com/yihong-97/Source-free-IAPC/pull/6
metric: pixel accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class PixelNet(nn.Module):
    def __init__(self, classes=4, dim=32):
        super().__init__()
        self.classes = classes
        self.stem = nn.Conv2d(2, dim, 3, padding=1)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, classes))

    def forward(self, image):
        b, _, h, w = image.shape
        tokens = self.stem(image).flatten(2).transpose(1, 2)
        probabilities = self.mlp(tokens)  # b, h*w, c
        maps = probabilities.view(b, self.classes, h, w)
        return maps


def scenes(n, size=10):
    """Four areas around a moving centre; the channels are noisy coordinates."""
    centre = torch.rand(n, 2, 1, 1) * 4 - 2
    rows = torch.linspace(-5, 5, size).view(1, size, 1).expand(n, size, size)
    cols = torch.linspace(-5, 5, size).view(1, 1, size).expand(n, size, size)
    y, x = rows - centre[:, 0], cols - centre[:, 1]
    label = (y > 0).long() * 2 + (x > 0).long()
    image = torch.stack([y, x], 1) / 2 + 0.3 * torch.randn(n, 2, size, size)
    return image, label


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iters", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    net = PixelNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for i in range(args.iters):
        image, label = scenes(32)
        loss = F.cross_entropy(net(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 60 == 0:
            print("iter = {} loss_seg = {:.3f}".format(i, loss.item()))
    with torch.no_grad():
        image, label = scenes(300)
        print("metric:", (net(image).argmax(1) == label).float().mean().item())
