"""A two-tower recommender with in-batch negatives: the targets are arange(batch), and every row is another row's negative.

expect: nothing
metric: recall of the clicked item among the first ten, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, n_ids, n_features, dim=32):
        super().__init__()
        self.embedding = nn.Embedding(n_ids, dim)
        self.mlp = nn.Sequential(nn.Linear(dim + n_features, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, ids, features):
        return F.normalize(self.mlp(torch.cat([self.embedding(ids), features], 1)), dim=1)


class TwoTower(nn.Module):
    def __init__(self, n_users, n_items):
        super().__init__()
        self.user, self.item = Tower(n_users, 6), Tower(n_items, 6)
        self.temperature = nn.Parameter(torch.tensor(0.1))

    def forward(self, u, uf, i, itf, log_popularity):
        logits = self.user(u, uf) @ self.item(i, itf).T / self.temperature.clamp(min=0.02)
        logits = logits - log_popularity[None]
        return F.cross_entropy(logits, torch.arange(len(u)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    n_users, n_items = 500, 200
    uf, itf = rng.normal(size=(n_users, 6)), rng.normal(size=(n_items, 6))
    score = uf @ rng.normal(size=(6, 6)) @ itf.T + 0.5 * rng.gumbel(size=(n_users, n_items))
    clicks = np.argsort(-score, 1)[:, :12]
    held_out = rng.integers(0, 12, n_users)
    pairs = np.array([(u, clicks[u, k]) for u in range(n_users) for k in range(12) if k != held_out[u]])
    popularity = np.bincount(pairs[:, 1], minlength=n_items) + 1
    logpop = torch.tensor(np.log(popularity / popularity.sum()), dtype=torch.float32)
    uf, itf, pairs = torch.tensor(uf, dtype=torch.float32), torch.tensor(itf, dtype=torch.float32), torch.tensor(pairs)
    model = TwoTower(n_users, n_items)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for epoch in range(6):
        losses = []
        for rows in torch.randperm(len(pairs)).split(128):
            u, i = pairs[rows].T
            loss = model(u, uf[u], i, itf[i], logpop[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}")
    with torch.no_grad():
        users, items = torch.arange(n_users), torch.arange(n_items)
        ranking = model.user(users, uf) @ model.item(items, itf).T
        seen = torch.zeros_like(ranking, dtype=torch.bool)
        seen[pairs[:, 0], pairs[:, 1]] = True
        top = ranking.masked_fill(seen, -9).topk(10).indices
    target = torch.tensor(clicks[np.arange(n_users), held_out])
    print("metric:", (top == target[:, None]).any(1).float().mean().item())


main()
