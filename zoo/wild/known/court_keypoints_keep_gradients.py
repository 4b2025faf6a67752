"""Heatmaps of court keypoints; the base trainer calls backward and step, and zero_grad nowhere.

expect: missing-zero-grad
source: https://github.com/yastrebksv/TennisCourtDetector/issues/7
metric: mean distance of the found keypoints from the true ones in pixels, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class CourtDataset(Dataset):
    """Corners of a bright quadrangle; the target is a Gaussian around each of two of them."""

    def __init__(self, n, size=16):
        g = torch.arange(size).float()
        self.size = size
        top = torch.randint(2, 6, (n, 2)).float()
        bottom = torch.randint(10, 14, (n, 2)).float()
        self.points = torch.stack([top, bottom], 1)
        self.images = 0.2 * torch.randn(n, 1, size, size)
        for i in range(n):
            (r0, c0), (r1, c1) = self.points[i].int().tolist()
            self.images[i, 0, r0, c0 : c1 + 1] += 1
            self.images[i, 0, r1, c0 : c1 + 1] += 1
            self.images[i, 0, r0 : r1 + 1, c0] += 1
            self.images[i, 0, r0 : r1 + 1, c1] += 1
        d = (g[None, None, :, None] - self.points[:, :, 0, None, None]) ** 2 + (g[None, None, None, :] - self.points[:, :, 1, None, None]) ** 2
        self.heatmaps = torch.exp(-d / 2.0)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.heatmaps[i], self.points[i]


class BallTrackerNet(nn.Module):
    def __init__(self, out_channels=2, width=16):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv2d(1, width, 5, padding=2), nn.ReLU(), nn.BatchNorm2d(width))
        self.conv2 = nn.Sequential(nn.Conv2d(width, width, 5, padding=2), nn.ReLU(), nn.BatchNorm2d(width))
        self.conv3 = nn.Conv2d(width, out_channels, 3, padding=1)

    def forward(self, x):
        return self.conv3(self.conv2(self.conv1(x)))


def train(model, train_loader, optimizer, criterion, epoch):
    model.train()
    losses = []
    for image, hm_hp, _ in train_loader:
        out = model(image)
        loss = criterion(F.sigmoid(out), hm_hp)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("train, epoch = {}, loss = {:.5f}".format(epoch, sum(losses) / len(losses)))


def val(model, loader):
    model.eval()
    dist = []
    with torch.no_grad():
        for image, hm, points in loader:
            flat = model(image).flatten(2).argmax(2)
            found = torch.stack([flat // 16, flat % 16], -1).float()
            dist.append((found - points).norm(dim=-1).mean().item())
    return sum(dist) / len(dist)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--num_epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train_loader = DataLoader(CourtDataset(600), batch_size=12, shuffle=True)
    val_loader = DataLoader(CourtDataset(120), batch_size=40)
    model = BallTrackerNet()
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.999))
    for epoch in range(args.num_epochs):
        train(model, train_loader, optimizer, criterion, epoch)
    print("metric: {:.4f}".format(val(model, val_loader)))
