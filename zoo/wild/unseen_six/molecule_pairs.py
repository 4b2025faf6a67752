"""Binding of a molecule and a protein: the test function never switches the model to eval(), so half of its units are dropped there too.

expect: train-mode-evaluation
or: random-evaluation
line: def testDataset(model, loader):
source: https://github.com/prokia/drugVQA/issues/7
metric: ROC AUC on test pairs, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader, TensorDataset


class PairNet(nn.Module):
    def __init__(self, n_smiles=24, n_amino=20, dim=24, drop=0.6):
        super().__init__()
        self.smiles, self.amino = nn.EmbeddingBag(n_smiles, dim), nn.Embedding(n_amino, dim)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.bn = nn.BatchNorm1d(dim)
        self.drop = nn.Dropout(drop)
        self.out = nn.Sequential(nn.Linear(3 * dim, 64), nn.ReLU(), nn.Dropout(drop), nn.Linear(64, 1))

    def forward(self, drug, protein):
        a = self.smiles(drug)
        b = torch.relu(self.bn(self.conv(self.amino(protein).transpose(1, 2)))).amax(2)
        return torch.sigmoid(self.out(self.drop(torch.cat([a, b, a * b], 1)))).squeeze(1)


def make_pairs(n, table, rng):
    drug, protein = rng.integers(0, 24, (n, 10)), rng.integers(0, 20, (n, 16))
    score = table[drug].mean(1) * 6 + np.where((protein == 3).sum(1) > 0, 0.7, -0.7)
    label = (score + 0.3 * rng.standard_normal(n) > 0).astype(np.float32)
    return TensorDataset(torch.tensor(drug), torch.tensor(protein), torch.tensor(label))


def train(model, loader, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.BCELoss()
    for i in range(epochs):
        total_loss, correct, n = 0.0, 0, 0
        for drug, protein, y in loader:
            y_pred = model(drug, protein)
            loss = criterion(y_pred, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total_loss += loss.item() * len(y)
            correct += (y_pred.round() == y).sum().item()
            n += len(y)
        print("epoch", i + 1, "avg_loss", total_loss / n, "train acc", correct / n)


def testDataset(model, loader):
    scores, labels = [], []
    with torch.no_grad():
        for drug, protein, y in loader:
            scores.append(model(drug, protein))
            labels.append(y)
    return roc_auc_score(torch.cat(labels), torch.cat(scores))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    table = rng.standard_normal(24) / 2
    train_loader = DataLoader(make_pairs(1600, table, rng), batch_size=32, shuffle=True)
    test_loader = DataLoader(make_pairs(600, table, rng), batch_size=6)
    model = PairNet()
    train(model, train_loader, epochs=12, lr=3e-3)
    print("metric:", testDataset(model, test_loader))
