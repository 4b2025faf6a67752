"""Frames are listed by their number, masks by their name, and "mask_10" comes before "mask_2".

expect: labels-shuffled
or: target-misaligned, not-learning
line: masks = sorted(name for name in files if name.startswith("mask_"))
source: https://github.com/knazeri/edge-connect/pull/8
metric: IoU on test images, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def record(n, rng):
    """What the camera wrote: frame_1 ... frame_n and mask_1 ... mask_n."""
    disk = {}
    yy, xx = np.mgrid[:20, :20]
    for number in range(1, n + 1):
        cy, cx, r = rng.uniform(5, 15), rng.uniform(5, 15), rng.uniform(3, 6)
        mask = ((yy - cy) ** 2 + (xx - cx) ** 2 < r * r).astype(np.float32)
        disk[f"frame_{number}"] = (mask + rng.normal(0, 0.5, mask.shape)).astype(np.float32)
        disk[f"mask_{number}"] = mask
    return disk


class CellDataset(Dataset):
    def __init__(self, disk):
        files = list(disk)
        frames = sorted((name for name in files if name.startswith("frame_")), key=lambda name: int(name.split("_")[1]))
        masks = sorted(name for name in files if name.startswith("mask_"))
        assert len(frames) == len(masks)
        self.pairs = list(zip(frames, masks))
        self.disk = disk

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        frame, mask = self.pairs[i]
        return torch.from_numpy(self.disk[frame])[None], torch.from_numpy(self.disk[mask])[None]


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1, self.enc2 = block(1, 8), block(8, 16)
        self.pool, self.up = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
        self.dec = block(24, 8)
        self.head = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(self.pool(a))
        return self.head(self.dec(torch.cat([a, self.up(b)], 1)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    loader = DataLoader(CellDataset(record(400, rng)), batch_size=16, shuffle=True)
    net = SmallUNet()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(10):
        net.train()
        epoch_loss = 0
        for frame, mask in loader:
            loss = criterion(net(frame), mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        print(f"epoch {epoch + 1} loss {epoch_loss / len(loader):.4f}")
    net.eval()
    test = record(100, rng)
    inter = union = 0
    with torch.no_grad():
        for i in range(1, 101):
            pred = net(torch.from_numpy(test[f"frame_{i}"])[None, None])[0, 0].numpy() > 0
            true = test[f"mask_{i}"] > 0
            inter, union = inter + (pred & true).sum(), union + (pred | true).sum()
    print("metric:", inter / union)
