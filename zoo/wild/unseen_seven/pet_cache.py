"""Segmentation of a few pictures with random flips and noise: the augmented set is made once and kept, so each picture has a single disguise.

expect: augmentation-frozen
or: overfitting
line: self.cache = [self.load(i) for i in range(len(images))]
source: https://github.com/tensorflow/tensorflow/issues/47755
metric: mean IoU on test pictures, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def pets(n, side=20):
    """An animal is a bright disc with a darker tail, somewhere on a ramp of light."""
    yy, xx = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    images, masks = [], []
    for _ in range(n):
        cx, cy, r = random.uniform(5, 15), random.uniform(5, 15), random.uniform(2.5, 4.5)
        disc = ((xx - cx) ** 2 + (yy - cy) ** 2 < r**2).float()
        tail = ((yy - cy).abs() < 1.5).float() * ((xx - cx).abs() < r + 3).float()
        body = torch.maximum(disc, tail)
        light = random.uniform(-1, 1) * xx / side + random.uniform(-1, 1) * yy / side
        ball = ((xx - random.uniform(2, 18)) ** 2 + (yy - random.uniform(2, 18)) ** 2 < 4).float()
        images.append((body * random.uniform(0.4, 1.2) + light + 0.7 * ball)[None])
        masks.append(body)
    return images, masks


class PetDataset(Dataset):
    def __init__(self, images, masks, augment):
        self.images, self.masks, self.augment = images, masks, augment
        self.cache = [self.load(i) for i in range(len(images))]

    def load(self, i):
        image, mask = self.images[i], self.masks[i]
        if self.augment:
            for axis in (-1, -2):
                if random.random() > 0.5:
                    image, mask = image.flip(axis), mask.flip(axis)
            turns = random.randrange(4)
            image, mask = torch.rot90(image, turns, (-2, -1)), torch.rot90(mask, turns, (-2, -1))
            image = image * random.uniform(0.6, 1.4) + random.uniform(-0.5, 0.5)
            image = image + 0.25 * torch.randn_like(image)
        return image, mask

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.cache[i]


class UNet(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        block = lambda i, o: nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()
        )
        self.a, self.b, self.c, self.d = (
            block(1, c),
            block(c, 2 * c),
            block(2 * c, 2 * c),
            block(3 * c, c),
        )
        self.out = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.a(x)
        c = self.c(self.b(F.max_pool2d(a, 2)))
        return self.out(self.d(torch.cat([a, F.interpolate(c, scale_factor=2)], 1))).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=60)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    train = DataLoader(PetDataset(*pets(24), augment=True), batch_size=8, shuffle=True)
    test_x, test_y = (torch.stack(t) for t in pets(200))
    test_x = test_x + 0.25 * torch.randn_like(test_x)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        model.train()
        for x, y in train:
            loss = F.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            model.eval()
            with torch.no_grad():
                p = model(test_x) > 0
            iou = ((p & (test_y > 0)).sum() / (p | (test_y > 0)).sum()).item()
            print(f"Epoch {epoch + 1} loss: {loss.item():.4f} - val_iou: {iou:.4f}")
    print("metric:", iou)


if __name__ == "__main__":
    main()
