"""Batch-hard triplets from P x K batches: rows of a batch are compared with each other, and the classes come in groups.

expect: nothing
metric: share of test samples with a nearest neighbour of the same class, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Sampler, TensorDataset


class PKSampler(Sampler):
    """P classes, K samples of each, one after the other."""

    def __init__(self, labels, p=5, k=6, n_batches=60):
        self.rows = [torch.nonzero(labels == c).squeeze(1) for c in labels.unique()]
        self.p, self.k, self.n_batches = p, k, n_batches

    def __len__(self):
        return self.n_batches

    def __iter__(self):
        for _ in range(self.n_batches):
            batch = []
            for c in torch.randperm(len(self.rows))[: self.p].tolist():
                batch += self.rows[c][torch.randint(0, len(self.rows[c]), (self.k,))].tolist()
            yield batch


def batch_hard(z, labels, margin=0.3):
    distance = torch.cdist(z, z)
    same = labels[:, None] == labels[None]
    hardest_positive = (distance * same).amax(1)
    hardest_negative = distance.masked_fill(same, float("inf")).amin(1)
    return F.softplus((hardest_positive - hardest_negative + margin) * 5).mean() / 5


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(512, 24))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    digits = load_digits()
    x, y = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    loader = DataLoader(TensorDataset(x[:1300], y[:1300]), batch_sampler=PKSampler(y[:1300]))
    model = Embedder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        losses = []
        for xb, yb in loader:
            loss = batch_hard(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} triplet loss {sum(losses) / len(losses):.4f}")
    model.eval()
    with torch.no_grad():
        z = model(x[1300:])
        distance = torch.cdist(z, z) + 9 * torch.eye(len(z))
    print("metric:", (y[1300:][distance.argmin(1)] == y[1300:]).float().mean().item())
