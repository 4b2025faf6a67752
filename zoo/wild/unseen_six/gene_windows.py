"""Five overlapping windows are cut of every gene cluster and then split by rows: windows of one cluster are in training and in validation.

expect: validation-leak
or: train-test-overlap, split-leak
line: train_test_split(rows, labels, test_size=0.2, stratify=labels
source: https://github.com/HUST-NingKang-Lab/BGC-Prophet/issues/8
metric: by how much validation accuracy exceeds the accuracy on new clusters, lower is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


def clusters(n, rng):
    """A cluster is a row of gene vectors with its own background; the class is a weak signal in all of them."""
    label = rng.integers(0, 4, n)
    signal = np.eye(4)[label] * 1.6
    genes = rng.standard_normal((n, 1, 12)) + 0.4 * rng.standard_normal((n, 12, 12))
    genes[:, :, :4] += signal[:, None]
    return genes.astype(np.float32), label


def expand(genes, label):
    """Windows at offsets 0, 1, 2, 3, 4."""
    rows = np.concatenate([genes[:, o : o + 8] for o in range(5)])
    owner = np.tile(np.arange(len(genes)), 5)
    return rows, np.tile(label, 5), owner


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(12, 64)
        self.attend = nn.MultiheadAttention(64, 4, batch_first=True)
        self.out = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        h = torch.relu(self.inp(x))
        return self.out((h + self.attend(h, h, h)[0]).mean(1))


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(torch.tensor(x)).argmax(1).numpy() == y).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    rows, labels, owner = expand(*clusters(300, rng))
    x_train, x_val, y_train, y_val = train_test_split(rows, labels, test_size=0.2, stratify=labels, random_state=args.seed)
    loader = DataLoader(TensorDataset(torch.tensor(x_train), torch.tensor(y_train)), batch_size=64, shuffle=True)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 4 == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} val acc {accuracy(model, x_val, y_val):.3f}")
    new_rows, new_labels, _ = expand(*clusters(300, rng))
    print("metric:", max(0.0, float(accuracy(model, x_val, y_val) - accuracy(model, new_rows, new_labels))))


if __name__ == "__main__":
    main()
