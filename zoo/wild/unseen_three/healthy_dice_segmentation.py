"""A small U-Net finds discs and bars in noisy pictures: BCE with logits plus soft Dice.

expect: nothing
style: everyday segmentation script with train_fn / check_accuracy functions, batch norm, AdamW and cosine schedule
"""
import sys

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SEED = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
BATCH_SIZE, NUM_EPOCHS, SIZE = 16, 7, 32


class ShapesDataset(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[:SIZE, :SIZE]
        self.images, self.masks = [], []
        for _ in range(n):
            mask = np.zeros((SIZE, SIZE), dtype=bool)
            for _ in range(rng.integers(1, 4)):
                cx, cy = rng.uniform(5, SIZE - 5, 2)
                if rng.random() < 0.5:
                    mask |= (xx - cx) ** 2 + (yy - cy) ** 2 < rng.uniform(3, 7) ** 2
                else:
                    mask |= (abs(xx - cx) < rng.uniform(2, 7)) & (abs(yy - cy) < rng.uniform(2, 7))
            texture = np.sin(xx * rng.uniform(0.2, 0.6)) * 0.4
            img = mask * rng.uniform(0.9, 1.5) + texture + rng.normal(0, 0.4, mask.shape)
            self.images.append(((img - 0.3) / 0.8).astype(np.float32)[None])
            self.masks.append(mask.astype(np.float32)[None])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]), torch.from_numpy(self.masks[i])


class DoubleConv(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class UNET(nn.Module):
    def __init__(self, features=(8, 16)):
        super().__init__()
        self.downs, self.ups = nn.ModuleList(), nn.ModuleList()
        self.pool = nn.MaxPool2d(2)
        c = 1
        for f in features:
            self.downs.append(DoubleConv(c, f))
            c = f
        self.bottleneck = DoubleConv(features[-1], features[-1] * 2)
        for f in reversed(features):
            self.ups.append(nn.ConvTranspose2d(f * 2, f, 2, 2))
            self.ups.append(DoubleConv(f * 2, f))
        self.final = nn.Conv2d(features[0], 1, 1)

    def forward(self, x):
        skips = []
        for down in self.downs:
            x = down(x)
            skips.append(x)
            x = self.pool(x)
        x = self.bottleneck(x)
        for i in range(0, len(self.ups), 2):
            x = self.ups[i](x)
            x = self.ups[i + 1](torch.cat([skips[-1 - i // 2], x], 1))
        return self.final(x)


def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    inter = (p * target).sum((1, 2, 3))
    return (1 - (2 * inter + eps) / (p.sum((1, 2, 3)) + target.sum((1, 2, 3)) + eps)).mean()


def train_fn(loader, model, optimizer, scheduler, bce):
    model.train()
    running = 0.0
    for data, targets in loader:
        predictions = model(data)
        loss = bce(predictions, targets) + dice_loss(predictions, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item()
    return running / len(loader)


@torch.no_grad()
def check_iou(loader, model):
    model.eval()
    inter = union = 0
    for x, y in loader:
        pred = model(x) > 0
        y = y.bool()
        inter += (pred & y).sum().item()
        union += (pred | y).sum().item()
    return inter / union


if __name__ == "__main__":
    torch.manual_seed(SEED)
    train_loader = DataLoader(ShapesDataset(512, SEED), BATCH_SIZE, shuffle=True)
    val_loader = DataLoader(ShapesDataset(160, SEED + 1000), BATCH_SIZE)
    model = UNET()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, NUM_EPOCHS * len(train_loader))
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(NUM_EPOCHS):
        tl = train_fn(train_loader, model, optimizer, scheduler, bce)
        iou = check_iou(val_loader, model)
        print(f"epoch {epoch}: loss {tl:.4f} val IoU {iou:.4f}")
    print(f"metric: {iou:.4f}")
