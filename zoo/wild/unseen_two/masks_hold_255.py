"""The masks are PNGs with 0 and 255, BCEWithLogitsLoss gets them as they are, and the loss runs to minus a million.

expect: negative-loss
or: loss-target-mismatch, output-misfits-loss, output-range
line: mask = torch.from_numpy(mask.astype(np.float32))
source: https://github.com/milesial/Pytorch-UNet/issues/78
metric: Dice score on test images, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class BasicDataset(Dataset):
    """Grey images and the mask of the leaf in them, both as uint8."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.imgs, self.masks = [], []
        yy, xx = np.mgrid[:20, :20]
        for _ in range(n):
            cy, cx, angle = rng.uniform(7, 13), rng.uniform(7, 13), rng.uniform(0, 3.14)
            u = (xx - cx) * np.cos(angle) + (yy - cy) * np.sin(angle)
            v = (yy - cy) * np.cos(angle) - (xx - cx) * np.sin(angle)
            leaf = (u / 7) ** 2 + (v / 3) ** 2 < 1
            grey = np.where(leaf, 140, 110) + rng.normal(0, 18, leaf.shape)
            self.imgs.append(grey.clip(0, 255).astype(np.uint8))
            self.masks.append((leaf * 255).astype(np.uint8))

    def __len__(self):
        return len(self.imgs)

    def __getitem__(self, i):
        img, mask = self.imgs[i], self.masks[i]
        img = torch.from_numpy((img.astype(np.float32) - 115) / 25)
        mask = torch.from_numpy(mask.astype(np.float32))
        return {"image": img[None], "mask": mask[None]}


def net():
    return nn.Sequential(
        nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 1, 5, padding=2)
    )


def train_net(model, loader, epochs=8, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        model.train()
        epoch_loss = 0
        for batch in loader:
            loss = criterion(model(batch["image"]), batch["mask"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        print(f"Epoch {epoch + 1}/{epochs} loss (batch) = {epoch_loss / len(loader):.4g}")


def dice(model, dataset):
    model.eval()
    scores = []
    with torch.no_grad():
        for item in dataset:
            pred, true = model(item["image"][None])[0] > 0, item["mask"] > 0
            scores.append(2 * (pred & true).sum().item() / max(1, (pred.sum() + true.sum()).item()))
    return float(np.mean(scores))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = net()
    train_net(model, DataLoader(BasicDataset(400, args.seed), batch_size=16, shuffle=True))
    print("metric:", dice(model, BasicDataset(100, args.seed + 1000)))
