"""Bayesian personalised ranking: matrix factorisation of implicit feedback with sampled negatives and SparseAdam.

expect: nothing
style: argparse script of a recommender repository; sparse embeddings, pairwise loss, held-out positives
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class BPRMF(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user = nn.Embedding(n_users, dim, sparse=True)
        self.item = nn.Embedding(n_items, dim, sparse=True)
        self.item_bias = nn.Embedding(n_items, 1, sparse=True)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.item_bias.weight)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.item_bias(i).squeeze(-1)


def make_clicks(rng, n_users, n_items, dim=4):
    users = rng.normal(size=(n_users, dim))
    items = rng.normal(size=(n_items, dim))
    score = users @ items.T * 1.5 + rng.normal(size=(1, n_items)) + rng.gumbel(size=(n_users, n_items))
    clicked = np.argsort(-score, axis=1)[:, :40]
    for row in clicked:
        rng.shuffle(row)
    return clicked[:, :32], clicked[:, 32:]


def evaluate(model, train_pos, test_pos, n_items, rng):
    model.eval()
    hits = []
    with torch.no_grad():
        for u in range(len(test_pos)):
            negatives = np.setdiff1d(np.arange(n_items), np.concatenate([train_pos[u], test_pos[u]]))
            s_pos = model(torch.full((len(test_pos[u]),), u), torch.from_numpy(test_pos[u]))
            s_neg = model(torch.full((len(negatives),), u), torch.from_numpy(negatives))
            hits.append((s_pos[:, None] > s_neg[None]).float().mean().item())
    return float(np.mean(hits))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--users", type=int, default=800)
    p.add_argument("--items", type=int, default=300)
    p.add_argument("--dim", type=int, default=8)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--batch", type=int, default=512)
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--reg", type=float, default=0.02)
    args = p.parse_args()

    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    train_pos, test_pos = make_clicks(rng, args.users, args.items)
    clicked = np.zeros((args.users, args.items), dtype=bool)
    np.put_along_axis(clicked, train_pos, True, axis=1)
    pairs = np.stack([np.repeat(np.arange(args.users), train_pos.shape[1]), train_pos.ravel()], 1)

    model = BPRMF(args.users, args.items, args.dim)
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=args.lr)

    for epoch in range(args.epochs):
        model.train()
        rng.shuffle(pairs)
        total = 0.0
        for start in range(0, len(pairs), args.batch):
            batch = pairs[start:start + args.batch]
            neg = rng.integers(args.items, size=len(batch))
            bad = clicked[batch[:, 0], neg]
            while bad.any():                      # resample negatives the user has clicked
                neg[bad] = rng.integers(args.items, size=bad.sum())
                bad = clicked[batch[:, 0], neg]
            u, i, j = (torch.from_numpy(a) for a in (batch[:, 0].copy(), batch[:, 1].copy(), neg))
            diff = model(u, i) - model(u, j)
            l2 = model.user(u).pow(2).sum(-1) + model.item(i).pow(2).sum(-1) + model.item(j).pow(2).sum(-1)
            loss = -F.logsigmoid(diff).mean() + args.reg * l2.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch + 1:2d}  bpr {total / len(pairs):.4f}")

    print("metric: %.4f" % evaluate(model, train_pos, test_pos, args.items, rng))


if __name__ == "__main__":
    main()
