"""Recommender: matrix factorisation with the BPR pairwise loss, sparse embedding gradients, sampled negatives.

expect: nothing
style: nn.Embedding(sparse=True) with SparseAdam, -logsigmoid(pos - neg), user and item in each batch mostly untouched rows
"""
import argparse
import logging

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("bpr")


class BPRMF(nn.Module):
    def __init__(self, n_users: int, n_items: int, dim: int = 16):
        super().__init__()
        self.user = nn.Embedding(n_users, dim, sparse=True)
        self.item = nn.Embedding(n_items, dim, sparse=True)
        self.bias = nn.Embedding(n_items, 1, sparse=True)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.bias(i).squeeze(-1)

    @torch.no_grad()
    def rank_scores(self):
        return self.user.weight @ self.item.weight.T + self.bias.weight.T


def interactions(rng, n_users=600, n_items=400, dim=4, per_user=24):
    u, v = rng.normal(size=(n_users, dim)), rng.normal(size=(n_items, dim))
    pop = rng.normal(size=n_items) * 0.5
    logits = 1.6 * u @ v.T / np.sqrt(dim) * 2 + pop
    gumbel = logits + rng.gumbel(size=logits.shape)
    chosen = np.argsort(-gumbel, axis=1)[:, :per_user]
    chosen = rng.permuted(chosen, axis=1)
    return chosen[:, :-4], chosen[:, -4:], n_items


def recall_at(model, train, test, k=20):
    scores = model.rank_scores().numpy().copy()
    np.put_along_axis(scores, train, -np.inf, axis=1)
    top = np.argpartition(-scores, k, axis=1)[:, :k]
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(top, test)])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    opt = ap.parse_args()
    rng = np.random.default_rng(opt.seed)
    torch.manual_seed(opt.seed)
    train, test, n_items = interactions(rng)
    n_users = len(train)
    users = np.repeat(np.arange(n_users), train.shape[1])
    items = train.reshape(-1)
    seen = np.zeros((n_users, n_items), dtype=bool)
    seen[users, items] = True

    model = BPRMF(n_users, n_items)
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.005)
    reg = 0.01
    for epoch in range(14):
        order = rng.permutation(len(users))
        total = 0.0
        for chunk in np.array_split(order, 50):
            u, pos = users[chunk], items[chunk]
            neg = rng.integers(0, n_items, len(chunk))
            while (bad := seen[u, neg]).any():
                neg[bad] = rng.integers(0, n_items, bad.sum())
            u, pos, neg = (torch.from_numpy(a) for a in (u, pos, neg))
            loss = -F.logsigmoid(model(u, pos) - model(u, neg)).mean()
            l2 = model.user(u).pow(2).sum(1) + model.item(pos).pow(2).sum(1) + model.item(neg).pow(2).sum(1)
            objective = loss + reg * 0.5 * l2.mean()
            optimizer.zero_grad()
            objective.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 3 == 1:
            log.info("epoch %d bpr %.4f recall@20 %.4f", epoch, total / 50, recall_at(model, train, test))
    print(f"metric: {recall_at(model, train, test):.4f}")


if __name__ == "__main__":
    main()
