"""The Dice loss returns the coefficient itself: what is to grow is made small.

expect: negative-loss
or: wrong-sign
line: return dice.mean()
source: https://github.com/sraashis/easytorch/pull/38
metric: test Dice coefficient, higher is better
"""

import argparse

import torch
import torch.nn as nn


def vessels(n, size, generator):
    """Bright wavy lines on a noisy ground."""
    xs = torch.arange(size).float()
    images, masks = [], []
    for _ in range(n):
        u = torch.rand(4, generator=generator)
        centre = size * (0.25 + 0.5 * u[0]) + size * 0.2 * torch.sin(xs * (0.15 + 0.3 * u[1]) + 6 * u[2])
        mask = ((xs.unsqueeze(1) - centre.unsqueeze(0)).abs() < 1.5 + 1.5 * u[3]).float()
        images.append(mask + 0.6 * torch.randn(size, size, generator=generator))
        masks.append(mask)
    return torch.stack(images).unsqueeze(1), torch.stack(masks).unsqueeze(1)


def dice_loss(logits, target, smooth=1.0):
    p = torch.sigmoid(logits).flatten(1)
    t = target.flatten(1)
    dice = (2 * (p * t).sum(1) + smooth) / (p.sum(1) + t.sum(1) + smooth)
    return dice.mean()


class Block(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.mid, self.up = Block(1, 8), Block(8, 16), Block(24, 8)
        self.pool = nn.MaxPool2d(2)
        self.grow = nn.Upsample(scale_factor=2)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.grow(self.mid(self.pool(a)))
        return self.out(self.up(torch.cat([a, b], 1)))


class EasyTrainer:
    def __init__(self, args):
        self.args = args
        self.nn = TinyUNet()
        self.optimizer = torch.optim.Adam(self.nn.parameters(), lr=args.lr)

    def iteration(self, images, masks):
        loss = dice_loss(self.nn(images), masks)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train(self, images, masks):
        self.nn.train()
        for epoch in range(self.args.epochs):
            losses = [self.iteration(images[i], masks[i]) for i in torch.randperm(len(images)).split(16)]
            print("epoch", epoch, "loss", sum(losses) / len(losses))

    @torch.no_grad()
    def test(self, images, masks):
        self.nn.eval()
        predicted = (self.nn(images) > 0).float()
        return (2 * (predicted * masks).sum() / (predicted.sum() + masks.sum())).item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    trainer = EasyTrainer(args)
    trainer.train(*vessels(320, 24, g))
    print("metric:", trainer.test(*vessels(80, 24, g)))
