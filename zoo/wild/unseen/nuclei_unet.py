"""Small U-Net that finds bright nuclei; the masks came from PNG files with the values 0 and 255 and went into BCEWithLogitsLoss as they were, the loss fell to minus thousands and everything was called nucleus.

expect: loss-target-mismatch
or: negative-loss
line: mask = torch.from_numpy(mask).float()
source: https://github.com/milesial/Pytorch-UNet/issues/78
metric: IoU on the test images, higher is better
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class NucleiDataset(Dataset):
    def __init__(self, n, seed, size=24):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[:size, :size]
        self.items = []
        for _ in range(n):
            mask = np.zeros((size, size), dtype=np.uint8)
            for _ in range(rng.integers(1, 4)):
                cy, cx, r = rng.uniform(3, size - 3), rng.uniform(3, size - 3), rng.uniform(2, 4)
                mask[(yy - cy) ** 2 + (xx - cx) ** 2 < r ** 2] = 255
            img = rng.normal(0.35, 0.12, (size, size)) + 0.3 * (mask > 0)
            self.items.append((np.clip(img, 0, 1), mask))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        img, mask = self.items[i]
        img = torch.from_numpy(img).float().unsqueeze(0)
        mask = torch.from_numpy(mask).float().unsqueeze(0)
        return {"image": img, "mask": mask}


def double_conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(inplace=True),
                         nn.Conv2d(o, o, 3, padding=1), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.inc = double_conv(1, c)
        self.down = nn.Sequential(nn.MaxPool2d(2), double_conv(c, 2 * c))
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.conv = double_conv(2 * c, c)
        self.outc = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.up(self.down(x1))
        return self.outc(self.conv(torch.cat([x1, x2], dim=1)))


def train_net(net, dataset, epochs=6, batch_size=8, lr=2e-3):
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=lr)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        net.train()
        epoch_loss = 0
        for batch in loader:
            masks_pred = net(batch["image"])
            loss = criterion(masks_pred, batch["mask"])
            epoch_loss += loss.item()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("Epoch finished ! Loss: %.4f" % (epoch_loss / len(loader)))


def eval_net(net, dataset):
    net.eval()
    inter = union = 0
    with torch.no_grad():
        for batch in DataLoader(dataset, batch_size=16):
            pred = net(batch["image"]) > 0
            true = batch["mask"] > 0
            inter += (pred & true).sum().item()
            union += (pred | true).sum().item()
    return inter / union


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    net = UNet()
    train_net(net, NucleiDataset(240, args.seed))
    print("metric: %.4f" % eval_net(net, NucleiDataset(80, 1000 + args.seed)))
