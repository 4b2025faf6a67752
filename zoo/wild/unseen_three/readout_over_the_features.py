"""The graph readout averages over the features, not over the nodes: what is left is one number per node, in an order without meaning.

expect: pooled-wrong-axis
line: h.mean(dim=-1)
source: https://github.com/flyingdoog/PGExplainer/issues/6
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn


def graphs(n, nodes, generator):
    """Random graphs with three kinds of atoms; the class is the kind that has the most bonds to its own."""
    kind = torch.randint(0, 3, (n, nodes), generator=generator)
    label = torch.randint(0, 3, (n,), generator=generator)
    same = kind.unsqueeze(1) == kind.unsqueeze(2)
    chosen = same & (kind == label.unsqueeze(1)).unsqueeze(1)
    chance = 0.1 + 0.35 * chosen.float()
    upper = (torch.rand(n, nodes, nodes, generator=generator) < chance).float().triu(1)
    adjacency = upper + upper.transpose(1, 2) + torch.eye(nodes)
    return nn.functional.one_hot(kind, 3).float(), adjacency, label


def normalise(adjacency):
    d = adjacency.sum(-1).rsqrt()
    return d.unsqueeze(2) * adjacency * d.unsqueeze(1)


class GraphConv(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.own = nn.Linear(fin, fout)
        self.near = nn.Linear(fin, fout, bias=False)

    def forward(self, x, a):
        return torch.relu(self.own(x) + self.near(a @ x))


class GCN(nn.Module):
    def __init__(self, hidden=20, classes=3):
        super().__init__()
        self.convs = nn.ModuleList([GraphConv(3, hidden), GraphConv(hidden, hidden)])
        self.lin = nn.Linear(hidden, classes)

    def forward(self, x, a):
        h = x
        for conv in self.convs:
            h = conv(h, a)
        out = h.mean(dim=-1)
        return self.lin(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    x, adjacency, label = graphs(1500, 20, g)
    a = normalise(adjacency)
    train, test = slice(0, 1200), slice(1200, None)
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        order = torch.randperm(1200)
        for pick in order.split(32):
            loss = nn.functional.cross_entropy(model(x[pick], a[pick]), label[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            fit = (model(x[train], a[train]).argmax(1) == label[train]).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.3f} train accuracy {fit:.3f}")
    with torch.no_grad():
        print("metric:", (model(x[test], a[test]).argmax(1) == label[test]).float().mean().item())


if __name__ == "__main__":
    main()
