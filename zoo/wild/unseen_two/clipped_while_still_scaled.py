"""Gradients are clipped to norm 1 while they still carry the loss scale, scaler.unscale_ is missing.

expect: clipped-before-unscale
or: clipping-too-tight
line: torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)
source: https://github.com/milesial/Pytorch-UNet/issues/468
metric: Dice score on validation images, higher is better
"""

import argparse
import logging

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")


class DoubleConv(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(
            nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc, self.down = DoubleConv(1, 8), DoubleConv(8, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.conv, self.outc = DoubleConv(16, 8), nn.Conv2d(8, 1, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.up(self.down(F.max_pool2d(x1, 2)))
        return self.outc(self.conv(torch.cat([x1, x2], 1)))


def dice_coeff(pred, mask, eps=1e-6):
    inter = (pred * mask).sum((1, 2, 3))
    return ((2 * inter + eps) / (pred.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + eps)).mean()


def cars(n, rng):
    yy, xx = np.mgrid[:16, :16]
    images, masks = [], []
    for _ in range(n):
        a, b = rng.uniform(3, 6), rng.uniform(2, 4)
        mask = (((xx - rng.uniform(5, 11)) / a) ** 2 + ((yy - rng.uniform(5, 11)) / b) ** 2 < 1).astype(np.float32)
        texture = rng.choice([-1, 1], mask.shape) * mask + rng.normal(0, 0.3, mask.shape)
        images.append(texture.astype(np.float32)), masks.append(mask)
    return torch.tensor(np.stack(images))[:, None], torch.tensor(np.stack(masks))[:, None]


def train_model(model, seed, epochs=8, batch_size=10, learning_rate=0.05, amp=True, gradient_clipping=1.0):
    rng = np.random.default_rng(seed)
    loader = DataLoader(TensorDataset(*cars(300, rng)), shuffle=True, batch_size=batch_size, drop_last=True)
    val_images, val_masks = cars(100, rng)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9, weight_decay=1e-8)
    grad_scaler = torch.amp.GradScaler("cpu", enabled=amp)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(1, epochs + 1):
        model.train()
        epoch_loss = 0
        for images, true_masks in loader:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
                masks_pred = model(images)
                loss = criterion(masks_pred, true_masks) + 1 - dice_coeff(torch.sigmoid(masks_pred), true_masks)
            optimizer.zero_grad(set_to_none=True)
            grad_scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)
            grad_scaler.step(optimizer)
            grad_scaler.update()
            epoch_loss += loss.item()
        model.eval()
        with torch.no_grad():
            val_score = dice_coeff((model(val_images) > 0).float(), val_masks).item()
        logging.info(f"epoch {epoch} loss {epoch_loss / len(loader):.4f} Validation Dice score: {val_score:.4f}")
    return val_score


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    print("metric:", train_model(UNet(), args.seed))
