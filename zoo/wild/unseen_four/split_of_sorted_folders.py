"""The data lie sorted by class and are split by index: the validation part has classes never trained on.

expect: split-not-shuffled
or: unshuffled-data
line: indices = list(range(n_train))
source: https://github.com/khanrc/pt.darts/issues/24
metric: validation accuracy, higher is better
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.sampler import SubsetRandomSampler


class ImageFolders(Dataset):
    """One folder per class, read one after the other."""

    def __init__(self):
        digits = load_digits()
        order = np.argsort(digits.target, kind="stable")
        self.images = torch.tensor(digits.images[order] / 16.0, dtype=torch.float32).unsqueeze(1)
        self.targets = torch.tensor(digits.target[order])

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return self.images[i], self.targets[i]


class Cell(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = nn.Conv2d(c, c, 3, padding=1)
        self.b = nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.b(torch.relu(self.a(x))))


def get_data(batch_size):
    train_data = ImageFolders()
    n_train = len(train_data)
    split = int(n_train * 0.7)
    indices = list(range(n_train))
    train_sampler = SubsetRandomSampler(indices[:split])
    valid_sampler = SubsetRandomSampler(indices[split:])
    return (DataLoader(train_data, batch_size=batch_size, sampler=train_sampler),
            DataLoader(train_data, batch_size=batch_size, sampler=valid_sampler))


def validate(loader, model, criterion):
    model.eval()
    top1 = loss = count = 0
    with torch.no_grad():
        for X, y in loader:
            logits = model(X)
            loss += criterion(logits, y).item() * len(y)
            top1 += (logits.argmax(1) == y).sum().item()
            count += len(y)
    return loss / count, top1 / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    config = parser.parse_args()
    np.random.seed(config.seed)
    torch.manual_seed(config.seed)
    train_loader, valid_loader = get_data(32)
    model = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), Cell(12), nn.MaxPool2d(2),
                          Cell(12), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(48, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(6):
        model.train()
        for X, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(X), y)
            loss.backward()
            optimizer.step()
        print("epoch %d train %.4f valid %.4f prec@1 %.4f" % (epoch, loss, *validate(valid_loader, model, criterion)))
    print("metric:", validate(valid_loader, model, criterion)[1])


if __name__ == "__main__":
    main()
