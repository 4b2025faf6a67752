"""Semi-supervised node classification: the whole graph in every step, twenty nodes of which have labels.

expect: nothing
style: full batch (the same input each step), masks, sparse matrix product, dropout by F.dropout
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_graph(seed, n=300, k=4):
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % k
    p = torch.where(y[:, None] == y[None], 0.09, 0.008)
    upper = torch.triu((torch.rand(n, n, generator=g) < p).float(), 1)
    a = upper + upper.T + torch.eye(n)
    d = a.sum(1).rsqrt()
    x = 0.5 * F.one_hot(y, k).float() @ torch.randn(k, 24, generator=g) + torch.randn(n, 24, generator=g)
    train = torch.zeros(n, dtype=torch.bool)
    train[:40] = True
    return (d[:, None] * a * d[None]).to_sparse(), x, y, train


class GCN(nn.Module):
    def __init__(self, n_in, hidden, n_out):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(n_in, hidden), nn.Linear(hidden, n_out)

    def forward(self, x, adj):
        x = F.dropout(x, 0.3, training=self.training)
        x = torch.sparse.mm(adj, self.lin1(x)).relu()
        x = F.dropout(x, 0.5, training=self.training)
        return torch.sparse.mm(adj, self.lin2(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    adj, x, y, mask = make_graph(args.seed)
    model = GCN(24, 32, 4)
    optimizer = torch.optim.Adam(
        [{"params": model.lin1.parameters(), "weight_decay": 5e-3}, {"params": model.lin2.parameters()}], lr=0.01
    )
    for epoch in range(1, 201):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, adj)[mask], y[mask])
        loss.backward()
        optimizer.step()
        if epoch % 40 == 0:
            model.eval()
            with torch.no_grad():
                acc = (model(x, adj).argmax(1) == y)[~mask].float().mean()
            print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Test: {acc:.4f}")
    print("metric: %.4f" % acc)


if __name__ == "__main__":
    main()
