"""Segmentation with skip connections and per-pixel cross entropy.

expect: nothing
half: fresh
net: cnn
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.b = nn.Sequential(nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.head = nn.Conv2d(2 * width, 3, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        return self.head(torch.cat([a, self.up(b)], 1))


def main():
    args = arguments(width=12, lr=3e-3, samples=500)
    x, _, vx, _ = digits(args.samples, image=True)
    label = lambda images: torch.bucketize(images[:, 0].contiguous(), torch.tensor([-0.5, 0.7]))
    model = UNet(args.width)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(5):
        model.train()
        for a, b in loader(x, label(x), batch=32):
            opt.zero_grad()
            loss = F.cross_entropy(model(a), b)
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            print(epoch, loss.item(), F.cross_entropy(model(vx), label(vx)).item())


if __name__ == "__main__":
    main()
