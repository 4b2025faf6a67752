"""Small CNN on colour images of shapes that come as (height, width, channel); they were brought to channel-first with reshape, which shuffles pixels and colours instead of moving the axis.

expect: axes-scrambled
line: imgs.reshape(len(imgs), 3, SIZE, SIZE)
source: https://github.com/Selen-Suyue/DensePolicy2D/issues/3
metric: test accuracy, higher is better
"""
import argparse

import numpy as np
import torch
import torch.nn as nn

SIZE = 20


def draw(n, rng):
    """A square, a disc or a cross in one colour on a ground of another colour."""
    imgs = np.zeros((n, SIZE, SIZE, 3), dtype=np.float32)
    labels = rng.integers(0, 3, n)
    yy, xx = np.mgrid[:SIZE, :SIZE]
    for i, lab in enumerate(labels):
        imgs[i] = rng.uniform(0, 1, 3)
        cy, cx, r = rng.integers(6, SIZE - 6, 2).tolist() + [rng.integers(4, 6)]
        dy, dx = np.abs(yy - cy), np.abs(xx - cx)
        if lab == 0:
            m = (dy <= r - 1) & (dx <= r - 1)
        elif lab == 1:
            m = dy ** 2 + dx ** 2 <= r ** 2
        else:
            m = ((dy <= 1) & (dx <= r)) | ((dx <= 1) & (dy <= r))
        imgs[i][m] = rng.uniform(0, 1, 3)
    imgs += rng.normal(0, 0.05, imgs.shape)
    return imgs, labels


def to_tensor(imgs):
    imgs = torch.from_numpy(imgs).float()
    return imgs.reshape(len(imgs), 3, SIZE, SIZE) - 0.5


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 5), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 24, 3), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveMaxPool2d(1),
        )
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    seed = ap.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    (xa, ya), (xb, yb) = draw(1200, rng), draw(500, rng)
    xa, xb = to_tensor(xa), to_tensor(xb)
    ya, yb = torch.from_numpy(ya), torch.from_numpy(yb)

    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(6):
        net.train()
        for idx in torch.randperm(len(xa)).split(40):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(xa[idx]), ya[idx])
            loss.backward()
            opt.step()
        print(epoch, round(loss.item(), 3))
    net.eval()
    with torch.no_grad():
        print("metric: %.4f" % (net(xb).argmax(1) == yb).float().mean().item())
