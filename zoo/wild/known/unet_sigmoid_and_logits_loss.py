"""The little U-Net ends in a sigmoid and the loss is BCEWithLogitsLoss: sigmoid twice, so no pixel can be called background.

expect: softmax-before-cross-entropy
or: output-misfits-loss
line: return torch.sigmoid(d1)
source: https://github.com/avBuffer/UNet3plus_pth/issues/23
metric: Dice of the masks on test images, higher is better
"""

import argparse
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


class UNetSmall(nn.Module):
    def __init__(self, n_channels=1, n_classes=1, feat=8):
        super().__init__()
        self.h1 = nn.Sequential(nn.Conv2d(n_channels, feat, 3, padding=1), nn.BatchNorm2d(feat), nn.ReLU(inplace=True))
        self.h2 = nn.Sequential(nn.Conv2d(feat, 2 * feat, 3, padding=1), nn.BatchNorm2d(2 * feat), nn.ReLU(inplace=True))
        self.up = nn.ConvTranspose2d(2 * feat, feat, 2, stride=2)
        self.outconv1 = nn.Conv2d(2 * feat, n_classes, 3, padding=1)

    def forward(self, x):
        h1 = self.h1(x)
        h2 = self.h2(F.max_pool2d(h1, 2))
        d1 = self.outconv1(torch.cat([h1, self.up(h2)], 1))
        return torch.sigmoid(d1)


def blobs(n, size=16):
    """Bright discs on noise, and their masks."""
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    centre = torch.randint(4, size - 4, (n, 2, 1, 1))
    radius = torch.randint(2, 5, (n, 1, 1))
    mask = ((yy - centre[:, 0]) ** 2 + (xx - centre[:, 1]) ** 2 <= radius**2).float()
    image = mask + 0.5 * torch.randn(n, size, size)
    return TensorDataset(image.unsqueeze(1), mask.unsqueeze(1))


def train_net(net, train_set, epochs, batch_size, lr):
    optimizer = torch.optim.RMSprop(net.parameters(), lr=lr, weight_decay=1e-8)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        net.train()
        epoch_loss = 0
        loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)
        for imgs, true_masks in loader:
            masks_pred = net(imgs)
            loss = criterion(masks_pred, true_masks)
            epoch_loss += loss.item()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        logging.info("epoch %d loss %.4f", epoch + 1, epoch_loss / len(loader))


@torch.no_grad()
def eval_net(net, data):
    net.eval()
    dice = 0.0
    for imgs, true_masks in DataLoader(data, batch_size=20):
        pred = (torch.sigmoid(net(imgs)) > 0.5).float()
        inter = (pred * true_masks).sum()
        dice += (2 * inter / (pred.sum() + true_masks.sum()).clamp_min(1)).item()
    return dice / len(DataLoader(data, batch_size=20))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    train_set, val_set = random_split(blobs(700), [600, 100])
    net = UNetSmall()
    train_net(net, train_set, epochs=4, batch_size=15, lr=1e-3)
    print("metric: %.4f" % eval_net(net, val_set))
