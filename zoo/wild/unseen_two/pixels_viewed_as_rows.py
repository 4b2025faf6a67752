"""The criterion for segmentation calls output.view(-1, n_classes) on an N x C x H x W map, nothing is permuted before.

expect: target-misaligned
or: not-learning
line: output = output.contiguous().view(-1, self.n_classes)
source: https://github.com/hieuvmphan/REMINDER/issues/6
metric: mean IoU on test images, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn


class FCN(nn.Module):
    def __init__(self, n_classes=4):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, stride=2, padding=1), nn.ReLU())
        self.mid = nn.Sequential(nn.Conv2d(16, 24, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(24, 16, 2, stride=2)
        self.score = nn.Conv2d(32, n_classes, 1)
        self.skip = nn.Conv2d(1, 16, 3, padding=1)

    def forward(self, x):
        y = torch.relu(self.up(self.mid(self.down(x))))
        return self.score(torch.cat([y, torch.relu(self.skip(x))], 1))


class CrossEntropy2d(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.n_classes = n_classes
        self.loss = nn.CrossEntropyLoss()

    def forward(self, output, target):
        output = output.contiguous().view(-1, self.n_classes)
        return self.loss(output, target.contiguous().view(-1))


def street(n, rng):
    """Images of 24 x 24: road below, sky above, and a box or two in between."""
    image = np.zeros((n, 24, 24), dtype=np.float32)
    mask = np.zeros((n, 24, 24), dtype=np.int64)
    for i in range(n):
        horizon = rng.integers(8, 16)
        mask[i, horizon:] = 1
        for kind in (2, 3):
            h, w = rng.integers(4, 9, 2)
            top, left = rng.integers(0, 24 - h), rng.integers(0, 24 - w)
            mask[i, top : top + h, left : left + w] = kind
        image[i] = np.array([-1.0, 0.0, 1.0, 2.0])[mask[i]]
    return image + rng.normal(0, 0.4, image.shape).astype(np.float32), mask


def mean_iou(pred, true, n_classes=4):
    scores = [((pred == c) & (true == c)).sum() / max(1, ((pred == c) | (true == c)).sum()) for c in range(n_classes)]
    return float(np.mean(scores))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=250)
    opt = parser.parse_args()
    torch.manual_seed(opt.seed)
    rng = np.random.default_rng(opt.seed)
    net = FCN()
    criterion = CrossEntropy2d(4)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    images, masks = street(400, rng)
    for it in range(opt.iterations):
        pick = rng.choice(400, 16, replace=False)
        x, y = torch.from_numpy(images[pick])[:, None], torch.from_numpy(masks[pick])
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        if it % 25 == 0:
            print("iter", it, "loss", round(loss.item(), 4))
    images, masks = street(100, rng)
    net.eval()
    with torch.no_grad():
        pred = net(torch.from_numpy(images)[:, None]).argmax(1).numpy()
    print("metric:", mean_iou(pred, masks))


main()
