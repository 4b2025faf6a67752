"""The demo puts the trained network in train mode before it predicts the test images one by one.

expect: train-mode-evaluation
line: net.train()  # demo
source: https://github.com/dbpprt/u-2-net-portrait/issues/4
metric: mean IoU, higher is better
"""
import argparse
import io

import numpy as np
import torch
from torch import nn


def portraits(n, rng, size=24):
    """A bright head and shoulders of any size before a dark background."""
    yy, xx = np.mgrid[:size, :size]
    images, masks = [], []
    for _ in range(n):
        cx, cy, r = rng.uniform(8, 16), rng.uniform(7, 11), rng.uniform(1, 9)
        mask = (xx - cx) ** 2 + (yy - cy) ** 2 < r * r
        mask |= (np.abs(xx - cx) < r * 1.4) & (yy > cy + r)
        image = 0.5 * rng.standard_normal((size, size)) + 0.9 * mask
        images.append(image)
        masks.append(mask)
    return (torch.tensor(np.array(images), dtype=torch.float32).unsqueeze(1),
            torch.tensor(np.array(masks), dtype=torch.float32).unsqueeze(1))


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class U2NetP(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1, self.enc2 = block(1, 12), block(12, 24)
        self.mid = nn.Sequential(block(24, 24), nn.Dropout2d(0.3))
        self.dec = nn.Sequential(block(36, 12), nn.Dropout2d(0.4))
        self.out = nn.Conv2d(12, 1, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.mid(self.enc2(nn.functional.max_pool2d(a, 2)))
        b = nn.functional.interpolate(b, scale_factor=2)
        return self.out(self.dec(torch.cat([a, b], 1)))


def fit(net, images, masks, epochs):
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    bce = nn.BCEWithLogitsLoss()
    net.train()
    for epoch in range(epochs):
        for idx in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            loss = bce(net(images[idx]), masks[idx])
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", round(loss.item(), 4))


def demo(checkpoint, images, masks):
    net = U2NetP()
    net.load_state_dict(torch.load(checkpoint))
    net.train()  # demo
    ious = []
    with torch.no_grad():
        for image, mask in zip(images, masks):
            pred = net(image[None])[0] > 0
            ious.append(((pred & (mask > 0)).sum() / (pred | (mask > 0)).sum()).item())
    return float(np.mean(ious))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    seed = ap.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    net = U2NetP()
    fit(net, *portraits(240, rng), epochs=7)
    buffer = io.BytesIO()
    torch.save(net.state_dict(), buffer)
    buffer.seek(0)
    print("metric:", demo(buffer, *portraits(100, rng)))
