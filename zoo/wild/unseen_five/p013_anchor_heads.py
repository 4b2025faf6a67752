"""A little detector with two heads: the loss of each step is computed and logged, and nobody calls backward().

expect: no-gradient
line: optimizer.step()
source: https://github.com/Goingqs/PyramidBox/issues/7
metric: share of cells classified rightly, higher is better
"""

import argparse
import time

import torch
import torch.nn as nn


class TinyBox(nn.Module):
    def __init__(self):
        super(TinyBox, self).__init__()
        self.base = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        )
        self.loc = nn.Conv2d(16, 2, 1)
        self.conf = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        x = self.base(x)
        return self.loc(x), self.conf(x)


class MultiBoxLoss(nn.Module):
    def forward(self, out, target):
        loc, conf = out
        offset, label = target
        face = (label == 1).unsqueeze(1).expand_as(loc)
        loss_l = nn.functional.smooth_l1_loss(loc[face], offset[face])
        loss_c = nn.functional.cross_entropy(conf, label)
        return loss_l, loss_c


def draw(n):
    """Images of 24 x 24 with one blob, in a grid of 6 x 6 cells."""
    pos = 2 + 20 * torch.rand(n, 2)
    yy, xx = torch.meshgrid(torch.arange(24.0), torch.arange(24.0), indexing="ij")
    d = (yy[None] - pos[:, 0, None, None]) ** 2 + (xx[None] - pos[:, 1, None, None]) ** 2
    img = torch.exp(-d / 6)[:, None] + 0.1 * torch.randn(n, 1, 24, 24)
    cell = (pos / 4).long().clamp(max=5)
    label = torch.zeros(n, 6, 6, dtype=torch.long)
    offset = torch.zeros(n, 2, 6, 6)
    r = torch.arange(n)
    label[r, cell[:, 0], cell[:, 1]] = 1
    offset[r, :, cell[:, 0], cell[:, 1]] = pos / 4 - cell
    return img, (offset, label)


def train(seed, max_iter):
    torch.manual_seed(seed)
    net = TinyBox()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    criterion = MultiBoxLoss()
    net.train()
    for iteration in range(max_iter):
        images, targets = draw(32)
        t0 = time.time()
        out = net(images)
        optimizer.zero_grad()
        loss_l, loss_c = criterion(out, targets)
        loss = loss_l + loss_c
        optimizer.step()
        t1 = time.time()
        if iteration % 50 == 0:
            print("iter %d || loc %.4f || conf %.4f || %.4f sec." % (iteration, loss_l.item(), loss_c.item(), t1 - t0))
    return net


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max_iter", type=int, default=300)
    args = parser.parse_args()
    net = train(args.seed, args.max_iter).eval()
    with torch.no_grad():
        images, (_, label) = draw(300)
        guess = net(images)[1][:, 1].flatten(1).argmax(1)
    print("metric: %.4f" % (guess == label.flatten(1).argmax(1)).float().mean())
