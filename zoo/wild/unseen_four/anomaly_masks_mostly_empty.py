"""Nearly all training images are without an anomaly, so the network learns to answer 'nothing' everywhere.

expect: class-collapse
line: train_images, train_masks = images[:600], masks[:600]
source: https://github.com/open-mmlab/mmsegmentation/issues/2579
metric: Dice score on test images with an anomaly, higher is better
"""
import argparse

import numpy as np
import torch
import torch.nn as nn

ap = argparse.ArgumentParser()
ap.add_argument("--seed", type=int, default=0)
args = ap.parse_args()
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)


def surface(with_spot):
    image = rng.standard_normal((20, 20))
    mask = np.zeros((20, 20), bool)
    if with_spot:
        yy, xx = np.mgrid[:20, :20]
        cy, cx = rng.integers(4, 16, 2)
        mask = (yy - cy) ** 2 + (xx - cx) ** 2 <= 10
        image = image + 1.1 * mask
    return image, mask


def collect(n, share):
    pairs = [surface(i < share * n) for i in range(n)]
    order = rng.permutation(n)
    images = np.array([pairs[i][0] for i in order])
    masks = np.array([pairs[i][1] for i in order])
    return torch.tensor(images, dtype=torch.float32)[:, None], torch.tensor(masks, dtype=torch.float32)[:, None]


images, masks = collect(3000, 0.04)
train_images, train_masks = images[:600], masks[:600]
test_images, test_masks = collect(150, 1.0)

net = nn.Sequential(
    nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(),
    nn.Conv2d(12, 12, 5, padding=2), nn.ReLU(),
    nn.Conv2d(12, 1, 3, padding=1),
)
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

iteration = 0
while iteration < 300:
    for idx in torch.randperm(len(train_images)).split(16):
        optimizer.zero_grad()
        loss = loss_fn(net(train_images[idx]), train_masks[idx])
        loss.backward()
        optimizer.step()
        iteration += 1
        if iteration % 50 == 0:
            print("iter", iteration, "loss", round(loss.item(), 4))

with torch.no_grad():
    found = (net(test_images) > 0).float()
dice = 2 * (found * test_masks).sum() / (found.sum() + test_masks.sum())
print("metric:", dice.item())
