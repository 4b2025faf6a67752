"""A dataset that prepares its pictures as they are asked for, in place: every epoch prepares what the last one left.

expect: samples-change-in-place
or: evaluation-scale, input-not-normalized, diverged
line: im = self._inputs[index]
source: https://github.com/facebookresearch/pycls/pull/21
metric: test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset

_MEAN, _SD = 0.305, 0.376


def color_norm(im, mean, std):
    im -= mean
    im /= std
    return im


class Digits(Dataset):
    def __init__(self, split):
        assert split in ("train", "test")
        x, y = load_digits(return_X_y=True)
        order = np.random.RandomState(0).permutation(len(x))
        part = order[:1300] if split == "train" else order[1300:]
        self._split = split
        self._inputs = (x[part] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
        self._labels = y[part]

    def _prepare_im(self, im):
        im = color_norm(im, _MEAN, _SD)
        if self._split == "train" and np.random.rand() < 0.5:
            im[:] = np.roll(im, np.random.choice([-1, 1]), axis=2)
        return im

    def __getitem__(self, index):
        im = self._inputs[index]
        return self._prepare_im(im).copy(), self._labels[index]

    def __len__(self):
        return len(self._inputs)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.f(x).flatten(1))


def test_epoch(loader, model):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(x).argmax(1) == y for x, y in loader]).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-epoch", type=int, default=12)
    args = parser.parse_args()
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    train_loader = DataLoader(Digits("train"), batch_size=64, shuffle=True, num_workers=0)
    test_loader = DataLoader(Digits("test"), batch_size=200)
    model = Net()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    for cur_epoch in range(args.max_epoch):
        model.train()
        for inputs, labels in train_loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("train_epoch %d loss %.4f" % (cur_epoch + 1, loss.item()))
    print("metric:", test_epoch(test_loader, model))


if __name__ == "__main__":
    main()
