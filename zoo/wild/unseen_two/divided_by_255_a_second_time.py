"""The dataset divides by 255 and then calls normalize(), which divides by max_pixel_value=255 once more.

expect: input-collapsed
or: input-not-normalized, input-ignored
line: img = normalize(img)
source: https://github.com/4uiiurz1/pytorch-nested-unet/issues/62
metric: test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


def normalize(img, mean=0.45, std=0.225, max_pixel_value=255.0):
    """As in the augmentation library: for images from 0 to max_pixel_value."""
    return (img - mean * max_pixel_value) / (std * max_pixel_value)


class DigitImages(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        img = self.images[idx]
        img = img.astype("float32") / 255
        img = normalize(img)
        return torch.from_numpy(img)[None], int(self.labels[idx])


class VGGBlock(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.conv2(self.relu(self.conv1(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1, self.block2 = VGGBlock(1, 12), VGGBlock(12, 24)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(24 * 4, 10)

    def forward(self, x):
        x = self.pool(self.block1(x))
        return self.fc(self.pool(self.block2(x)).flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    config = vars(parser.parse_args())
    torch.manual_seed(config["seed"])
    digits = load_digits()
    order = np.random.default_rng(config["seed"]).permutation(1797)
    images, labels = (digits.images[order] * 15.9).astype(np.uint8), digits.target[order]
    loader = DataLoader(DigitImages(images[:1400], labels[:1400]), batch_size=32, shuffle=True)
    model = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    for epoch in range(config["epochs"]):
        model.train()
        losses = []
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"Epoch [{epoch}/{config['epochs']}] loss {np.mean(losses):.4f}")
    model.eval()
    with torch.no_grad():
        x, y = next(iter(DataLoader(DigitImages(images[1400:], labels[1400:]), batch_size=397)))
        print("metric:", (model(x).argmax(1) == y).float().mean().item())


main()
