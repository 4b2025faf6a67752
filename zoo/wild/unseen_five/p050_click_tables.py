"""Clicks from user and item ids: embeddings with sparse gradients under SparseAdam, the rest under Adam.

expect: nothing
style: two optimizers for one loss, most rows of a table without gradient in a step
metric: AUC, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score


class ClickModel(nn.Module):
    def __init__(self, users, items, dim=8):
        super().__init__()
        self.user = nn.Embedding(users, dim, sparse=True)
        self.item = nn.Embedding(items, dim, sparse=True)
        self.mlp = nn.Sequential(nn.Linear(3 * dim, 32), nn.ReLU(), nn.Linear(32, 1))
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)

    def forward(self, u, i):
        u, i = self.user(u), self.item(i)
        return self.mlp(torch.cat([u, i, u * i], 1)).squeeze(1)


def clicks(n, taste, kind):
    u, i = torch.randint(len(taste), (n,)), torch.randint(len(kind), (n,))
    return u, i, torch.bernoulli(torch.sigmoid(3 * (taste[u] * kind[i]).sum(1) - 0.5))


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
taste, kind = torch.randn(300, 3) * 0.8, torch.randn(200, 3) * 0.8
train, test = clicks(30000, taste, kind), clicks(5000, taste, kind)
model = ClickModel(300, 200)
dense = torch.optim.Adam(model.mlp.parameters(), lr=3e-3)
sparse = torch.optim.SparseAdam([model.user.weight, model.item.weight], lr=1e-2)
loss_fn = nn.BCEWithLogitsLoss()
for epoch in range(5):
    for idx in torch.randperm(30000).split(256):
        u, i, y = (t[idx] for t in train)
        loss = loss_fn(model(u, i), y)
        dense.zero_grad()
        sparse.zero_grad()
        loss.backward()
        dense.step()
        sparse.step()
    print("epoch", epoch, "loss", loss.item())
with torch.no_grad():
    u, i, y = test
    print("metric:", roc_auc_score(y.numpy(), model(u, i).numpy()))
