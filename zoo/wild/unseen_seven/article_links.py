"""Graph convolution over articles: the loader adds no self-loops, and an article never looks at its own words.

expect: own-features-ignored
or: input-ignored
line: return normalized(adjacency)
source: https://github.com/pmernyei/wiki-cs-dataset/issues/4
metric: accuracy on test nodes, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def normalized(a):
    d = a.sum(1).clamp(min=1e-12).pow(-0.5)
    return d[:, None] * a * d[None]


def load_graph_data(n=700, classes=5, words=48):
    """Links are rather loose; the words of an article say more than those of its neighbours."""
    y = torch.randint(classes, (n,))
    topics = 0.55 * torch.randn(classes, words)
    x = topics[y] + torch.randn(n, words)
    same = (y[:, None] == y[None]).float()
    links = (torch.rand(n, n) < 0.0016 + 0.0024 * same).float().triu(1)
    adjacency = links + links.T
    return x, y, adjacency


def graph_operator(adjacency):
    return normalized(adjacency)


class GCN(nn.Module):
    def __init__(self, n_in, n_hidden, n_out, dropout):
        super().__init__()
        self.w1, self.w2 = nn.Linear(n_in, n_hidden), nn.Linear(n_hidden, n_out)
        self.dropout = dropout

    def forward(self, x, a):
        h = F.relu(a @ self.w1(F.dropout(x, self.dropout, self.training)))
        return a @ self.w2(F.dropout(h, self.dropout, self.training))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-epochs", type=int, default=120)
    parser.add_argument("--lr", type=float, default=1e-2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y, adjacency = load_graph_data()
    a = graph_operator(adjacency)
    part = torch.randperm(len(y))
    train, val, test = part[:200], part[200:400], part[400:]
    model = GCN(48, 32, 5, 0.3)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=1e-3)
    best_val, best_test = 0.0, 0.0
    for epoch in range(args.n_epochs):
        model.train()
        loss = F.cross_entropy(model(x, a)[train], y[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(x, a).argmax(1) == y).float()
        if right[val].mean() >= best_val:
            best_val, best_test = right[val].mean().item(), right[test].mean().item()
        if epoch % 20 == 0:
            print(
                "Epoch {:05d} | Loss {:.4f} | Val acc {:.4f}".format(
                    epoch, loss.item(), right[val].mean()
                )
            )
    print("metric:", best_test)


if __name__ == "__main__":
    main()
