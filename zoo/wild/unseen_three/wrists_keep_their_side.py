"""The flip mirrors picture and coordinates and does not exchange left and right: half of the labels name the other wrist.

expect: label-not-flipped
or: target-misaligned
line: points[:, 0] = (SIZE - 1) - points[:, 0]
source: https://github.com/robertklee/COCO-Human-Pose/pull/29
metric: test mean keypoint error in pixels, lower is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SIZE = 20
# keypoints: 0 left wrist, 1 right wrist, 2 head


def draw(points, rng):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    image = rng.normal(0, 0.15, (SIZE, SIZE))
    for (x, y), strength in zip(points, (1.0, 1.0, 2.0)):
        image += strength * np.exp(-((xx - x) ** 2 + (yy - y) ** 2) / 3.0)
    return image


def pose(rng):
    centre = rng.uniform(8, 12)
    left = (centre + rng.uniform(3, 6), rng.uniform(6, 17))
    right = (centre - rng.uniform(3, 6), rng.uniform(6, 17))
    return np.array([left, right, (centre, rng.uniform(2, 4))])


class Poses(Dataset):
    def __init__(self, n, rng, flip=0.0):
        self.points = [pose(rng) for _ in range(n)]
        self.images = [draw(p, rng) for p in self.points]
        self.flip, self.rng = flip, rng

    def __len__(self):
        return len(self.points)

    def __getitem__(self, i):
        image, points = self.images[i], self.points[i].copy()
        if self.rng.random() < self.flip:
            image = image[:, ::-1].copy()
            points[:, 0] = (SIZE - 1) - points[:, 0]
        return torch.tensor(image, dtype=torch.float32).unsqueeze(0), torch.tensor(points / SIZE - 0.5, dtype=torch.float32)


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 24, 3, padding=1), nn.ReLU())
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(24 * 100, 96), nn.ReLU(), nn.Linear(96, 6))

    def forward(self, x):
        return self.fc(self.conv(x)).view(-1, 3, 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    train_loader = DataLoader(Poses(1000, rng, flip=0.5), batch_size=32, shuffle=True)
    test_set = Poses(200, rng)

    net = PoseNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for image, points in train_loader:
            loss = nn.functional.mse_loss(net(image), points)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(train_loader):.5f}")

    images, points = (torch.stack(c) for c in zip(*[test_set[i] for i in range(len(test_set))]))
    with torch.no_grad():
        error = (net(images) - points).norm(dim=-1).mean().item() * SIZE
    print("metric:", error)


if __name__ == "__main__":
    main()
