"""A little ResNet: pictures are standardised for training, and for testing the transform has been forgotten.

expect: evaluation-scale
line: test_set = Pictures(x_test, y_test)
source: https://github.com/JeasunLok/ResNet-pytorch/issues/1
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, x):
        return (x - self.mean) / self.std


class Pictures(Dataset):
    def __init__(self, images, labels, transform=None):
        self.images, self.labels, self.transform = images, labels, transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        if self.transform:
            image = self.transform(image)
        return image, self.labels[i]


class BasicBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU(),
            nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))


def accuracy(net, loader):
    net.eval()
    with torch.no_grad():
        return sum((net(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser("train")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch_size", type=int, default=50)
    parser.add_argument("--epoch", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    d = load_digits()
    x, y = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) * 15.9, torch.tensor(d.target)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    x_train, y_train, x_test, y_test = x[:1300], y[:1300], x[1300:], y[1300:]
    normalize = Normalize(x_train.mean(), x_train.std())
    train_set = Pictures(x_train, y_train, normalize)
    test_set = Pictures(x_test, y_test)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=200)

    net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), BasicBlock(16), nn.MaxPool2d(2),
                        BasicBlock(16), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(args.epoch):
        net.train()
        for images, labels in train_loader:
            loss = nn.functional.cross_entropy(net(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch %d loss %.4f test %.4f" % (epoch, loss.item(), accuracy(net, test_loader)))
    print("metric: %.4f" % accuracy(net, test_loader))


if __name__ == "__main__":
    main()
