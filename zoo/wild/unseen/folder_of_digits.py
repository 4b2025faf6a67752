"""Digits read folder by folder, class after class, and trained in that order without shuffling; the network forgot the first digits while it saw the last ones.

expect: unshuffled-data
line: train_loader = DataLoader(
source: https://github.com/facebookresearch/fastText/issues/74
metric: test accuracy, higher is better
"""
import argparse
from collections import defaultdict

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class FolderDataset(Dataset):
    """Holds {class: [images]} the way a directory per class would."""

    def __init__(self, folders):
        self.samples = []
        for name in sorted(folders):
            for image in folders[name]:
                self.samples.append((image, name))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        image, name = self.samples[index]
        return image, name


def read(seed):
    d = load_digits()
    g = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(d.images), generator=g).tolist()
    train, test = defaultdict(list), defaultdict(list)
    for k, i in enumerate(order):
        image = torch.tensor(d.images[i], dtype=torch.float32)[None] / 8 - 1
        (train if k < 1400 else test)[int(d.target[i])].append(image)
    return FolderDataset(train), FolderDataset(test)


def net():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3), nn.ReLU(), nn.Conv2d(12, 24, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(24 * 16, 64), nn.ReLU(), nn.Linear(64, 10),
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    train_set, test_set = read(a.seed)
    train_loader = DataLoader(train_set, batch_size=32)
    test_loader = DataLoader(test_set, batch_size=128)
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(5):
        for image, label in train_loader:
            loss = F.cross_entropy(model(image), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print("epoch", epoch, "last loss", round(loss.item(), 4))
    hits = 0
    with torch.no_grad():
        for image, label in test_loader:
            hits += (model(image).argmax(1) == label).sum().item()
    print("metric:", round(hits / len(test_set), 4))


if __name__ == "__main__":
    main()
