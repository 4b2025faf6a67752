"""Image and mask go through the random flip one after the other, each with its own throw of the coin.

expect: target-misaligned
line: mask = self.transform(mask)
source: https://github.com/fastai/fastai/issues/245
metric: test intersection over union, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class RandomFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, *tensors):
        if random.random() < self.p:
            tensors = [t.flip(-1) for t in tensors]
        if random.random() < self.p:
            tensors = [t.flip(-2) for t in tensors]
        return tensors[0] if len(tensors) == 1 else tensors


class Cells(Dataset):
    """Bright blobs on an uneven background."""

    def __init__(self, n, generator, transform=None, size=24):
        self.transform = transform
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.images, self.masks = [], []
        for _ in range(n):
            cx, cy = torch.rand(2, generator=generator) * (size - 10) + 5
            rx, ry = torch.rand(2, generator=generator) * 3 + 2.5
            mask = (((xx - cx) / rx) ** 2 + ((yy - cy) / ry) ** 2 <= 1).float()
            slope = 0.03 * (xx - yy) * (torch.rand(1, generator=generator) - 0.5)
            image = mask * 1.2 + slope + 0.5 * torch.randn(size, size, generator=generator)
            self.images.append(image.unsqueeze(0))
            self.masks.append(mask.unsqueeze(0))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image, mask = self.images[i], self.masks[i]
        if self.transform is not None:
            image = self.transform(image)
            mask = self.transform(mask)
        return image, mask


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.loss_fn = nn.BCEWithLogitsLoss()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for image, mask in loader:
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(image), mask)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}: {total / len(loader):.4f}")

    @torch.no_grad()
    def iou(self, loader):
        self.model.eval()
        both = either = 0.0
        for image, mask in loader:
            predicted = self.model(image) > 0
            both += (predicted & mask.bool()).sum().item()
            either += (predicted | mask.bool()).sum().item()
        return both / max(either, 1.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    train_set, test_set = Cells(320, g, RandomFlip()), Cells(100, g)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 5, padding=2), nn.BatchNorm2d(12), nn.ReLU(),
        nn.Conv2d(12, 12, 5, padding=2), nn.BatchNorm2d(12), nn.ReLU(),
        nn.Conv2d(12, 1, 3, padding=1),
    )
    trainer = Trainer(net, lr=3e-3)
    trainer.fit(DataLoader(train_set, 16, shuffle=True), epochs=8)
    print("metric:", trainer.iou(DataLoader(test_set, 50)))
