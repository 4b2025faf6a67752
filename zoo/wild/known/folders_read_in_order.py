"""Images are read folder by folder, one class after the other, and the loader does not shuffle: only the last classes are known.

expect: unshuffled-data
line: DataLoader(train_set, batch_size=args.batch_size)
source: https://github.com/keras-team/keras/issues/6955
metric: test accuracy, higher is better
"""

import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


class FolderDataset(Dataset):
    """root/class/number.npy, as ImageFolder reads it."""

    def __init__(self, root):
        self.items = []
        for cls in sorted(os.listdir(root)):
            for name in sorted(os.listdir(os.path.join(root, cls))):
                array = np.load(os.path.join(root, cls, name))
                self.items.append((torch.from_numpy(array), int(cls)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        image, label = self.items[i]
        return (image.float() - 4.9) / 6.0, label


def write_folders(root, images, labels):
    for i, (image, label) in enumerate(zip(images, labels)):
        os.makedirs(os.path.join(root, str(label)), exist_ok=True)
        np.save(os.path.join(root, str(label), "%04d.npy" % i), image[None])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    digits = load_digits()
    pick = np.random.RandomState(args.seed).permutation(1797)
    with tempfile.TemporaryDirectory() as root:
        train_dir, test_dir = os.path.join(root, "train"), os.path.join(root, "test")
        write_folders(train_dir, digits.images[pick[:1000]], digits.target[pick[:1000]])
        write_folders(test_dir, digits.images[pick[1000:1400]], digits.target[pick[1000:1400]])
        train_set, test_set = FolderDataset(train_dir), FolderDataset(test_dir)

    train_loader = DataLoader(train_set, batch_size=args.batch_size)
    test_loader = DataLoader(test_set, batch_size=100)

    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(192, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.05)

    for epoch in range(args.epochs):
        net.train()
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(inputs), labels)
            loss.backward()
            optimizer.step()
        print("epoch %d, last loss %.4f" % (epoch + 1, loss.item()))

    net.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in test_loader:
            correct += (net(inputs).argmax(1) == labels).sum().item()
    print("metric: %.4f" % (correct / len(test_set)))


if __name__ == "__main__":
    main()
