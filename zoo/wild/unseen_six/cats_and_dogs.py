"""Two kinds of pictures and so much augmentation (flips, tiny crops, jitter) that the loss stays at 0.69.

expect: augmentation-too-strong
or: not-learning
line: transform = Compose([RandomVerticalFlip(), RandomCrop(5), ColorJitter(4.0)])
source: https://www.mo4tech.com/image-classification-record-a-sinkhole-binary-classification-network-using-crossentropyloss-loss-has-been-at-0-69-do-not-converge-problem.html
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, x):
        for step in self.steps:
            x = step(x)
        return x


class RandomVerticalFlip:
    def __call__(self, x):
        return x.flip(-2) if torch.rand(()) < 0.5 else x


class RandomCrop:
    """Cuts out a window and blows it up to the former size."""

    def __init__(self, size):
        self.size = size

    def __call__(self, x):
        top, left = torch.randint(0, x.size(-1) - self.size + 1, (2,)).tolist()
        part = x[:, top : top + self.size, left : left + self.size]
        return F.interpolate(part[None], size=x.shape[-2:], mode="nearest")[0]


class ColorJitter:
    def __init__(self, strength):
        self.strength = strength

    def __call__(self, x):
        gain = 1 + self.strength * (torch.rand(x.size(0), 1, 1) - 0.5)
        return x * gain + self.strength * (torch.rand(x.size(0), 1, 1) - 0.5)


class Pets(Dataset):
    """Ears above a face, pointed or hanging."""

    def __init__(self, n, transform=None):
        self.labels = torch.randint(2, (n,))
        self.images = 0.25 * torch.randn(n, 3, 20, 20)
        shade = torch.rand(n, 3) * 0.6 + 0.4
        for i, label in enumerate(self.labels):
            y, x = torch.randint(5, 10, (2,)).tolist()
            self.images[i, :, y : y + 6, x : x + 6] += shade[i][:, None, None]
            for ear in (x, x + 5):
                rows = slice(y - 3, y) if label else slice(y + 6, y + 9)
                self.images[i, :, rows, ear] += shade[i][:, None]
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        return (self.transform(image) if self.transform else image), self.labels[i]


class SmallResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.c1, self.c2 = nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.b1, self.b2 = nn.BatchNorm2d(16), nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 25, 2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), 2)
        x = x + F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))))
        return self.fc(F.max_pool2d(x, 2).flatten(1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    transform = Compose([RandomVerticalFlip(), RandomCrop(5), ColorJitter(4.0)])
    train_loader = DataLoader(Pets(1200, transform), batch_size=32, shuffle=True)
    test_loader = DataLoader(Pets(400), batch_size=100)
    model = SmallResNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for data, label in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(data), label)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch:", epoch, "loss:", total / len(train_loader))
    model.eval()
    with torch.no_grad():
        print("metric:", sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader) / 400)
