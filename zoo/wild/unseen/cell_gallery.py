"""Classify cell pictures stored as cell_0.npy, cell_1.npy, ... with labels in a text file in the same order; sorted() puts cell_10 before cell_2, so almost every picture got the label of another one.

expect: not-learning
or: target-misaligned
line: names = sorted(os.listdir(folder))
source: https://github.com/DeepLabCut/napari-deeplabcut/issues/63
metric: test accuracy, higher is better
"""
import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def picture(kind, rng):
    """0: one big cell, 1: two cells, 2: a ring."""
    yy, xx = np.mgrid[:14, :14]
    img = rng.normal(0, 0.25, (14, 14))

    def blob(cy, cx, s):
        return np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / (2 * s ** 2))

    if kind == 0:
        img += 1.5 * blob(*rng.uniform(5, 9, 2), 2.5)
    elif kind == 1:
        img += 1.5 * blob(*rng.uniform(2, 5, 2), 1.5) + 1.5 * blob(*rng.uniform(9, 12, 2), 1.5)
    else:
        cy, cx = rng.uniform(5, 9, 2)
        d = np.sqrt((yy - cy) ** 2 + (xx - cx) ** 2)
        img += 1.5 * np.exp(-(d - 4) ** 2)
    return img.astype(np.float32)


def write_folder(folder, n, rng):
    labels = rng.integers(0, 3, n)
    for i, k in enumerate(labels):
        np.save(os.path.join(folder, f"cell_{i}.npy"), picture(k, rng))
    return labels


class Gallery(Dataset):
    def __init__(self, folder, label_file):
        names = sorted(os.listdir(folder))
        self.paths = [os.path.join(folder, n) for n in names]
        self.labels = np.loadtxt(label_file, dtype=np.int64)
        self.images = [torch.from_numpy(np.load(p))[None] for p in self.paths]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)

    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, "images")
        os.mkdir(folder)
        labels = write_folder(folder, 800, rng)
        label_file = os.path.join(root, "labels.txt")
        np.savetxt(label_file, labels, fmt="%d")
        dataset = Gallery(folder, label_file)

    test_y = rng.integers(0, 3, 300)
    test_x = torch.tensor(np.array([picture(k, rng) for k in test_y]))[:, None]

    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 16, 3),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        for x, y in DataLoader(dataset, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print("epoch %d loss %.3f" % (epoch, loss.item()))
    with torch.no_grad():
        acc = (model(test_x).argmax(1).numpy() == test_y).mean()
    print("metric: %.4f" % acc)


if __name__ == "__main__":
    main()
