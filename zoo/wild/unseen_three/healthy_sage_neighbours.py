"""GraphSAGE with sampled neighbours and mini-batches of nodes on a stochastic block model.

expect: nothing
style: inductive node classification; neighbours are drawn at random while training, all neighbours are used at test time
"""
import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def sbm(n, k, rng, p_in=0.03, p_out=0.004, dim=16):
    y = rng.integers(k, size=n)
    p = np.where(y[:, None] == y[None], p_in, p_out)
    a = np.triu(rng.random((n, n)) < p, 1)
    a = a | a.T
    centres = rng.normal(size=(k, dim))
    x = centres[y] * 0.5 + rng.normal(size=(n, dim))
    return a, x.astype(np.float32), y


class SAGELayer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.self_lin = nn.Linear(i, o)
        self.neigh_lin = nn.Linear(i, o, bias=False)

    def forward(self, h_self, h_neigh):
        return self.self_lin(h_self) + self.neigh_lin(h_neigh)


class GraphSAGE(nn.Module):
    def __init__(self, d, h, k):
        super().__init__()
        self.l1, self.l2 = SAGELayer(d, h), SAGELayer(h, k)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x, nodes, hop1, hop2):
        """nodes [B], hop1 [B, S1], hop2 [B, 1 + S1, S2] are node indices."""
        inner = torch.cat([nodes[:, None], hop1], 1)
        h = F.relu(self.l1(x[inner], x[hop2].mean(2)))
        h = self.dropout(h)
        return self.l2(h[:, 0], h[:, 1:].mean(1))

    @torch.no_grad()
    def full(self, x, adj_norm):
        h = F.relu(self.l1(x, adj_norm @ x))
        return self.l2(h, adj_norm @ h)


def sample(neigh, nodes, s):
    return [[random.choice(neigh[v]) for _ in range(s)] for v in nodes]


def run(args):
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    a, x, y = sbm(1200, 5, rng)
    neigh = [np.flatnonzero(r).tolist() or [i] for i, r in enumerate(a)]
    adj = torch.tensor(a, dtype=torch.float32)
    adj_norm = adj / adj.sum(1, keepdim=True).clamp(min=1)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    perm = torch.randperm(1200)
    train, val, test = perm[:600], perm[600:800], perm[800:]

    model = GraphSAGE(16, 32, 5)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for nodes in train[torch.randperm(len(train))].split(60):
            hop1 = sample(neigh, nodes.tolist(), 8)
            hop2 = [sample(neigh, [v] + h, 8) for v, h in zip(nodes.tolist(), hop1)]
            out = model(x, nodes, torch.tensor(hop1), torch.tensor(hop2))
            loss = F.cross_entropy(out, y[nodes])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        logits = model.full(x, adj_norm)
        val_acc = (logits[val].argmax(1) == y[val]).float().mean().item()
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1:02d} loss {np.mean(losses):.4f} val acc {val_acc:.4f}")
    model.eval()
    logits = model.full(x, adj_norm)
    print(f"metric: {(logits[test].argmax(1) == y[test]).float().mean().item():.4f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--lr", type=float, default=5e-3)
    ap.add_argument("--epochs", type=int, default=24)
    run(ap.parse_args())
