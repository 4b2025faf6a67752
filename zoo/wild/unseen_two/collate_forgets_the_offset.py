"""My own collate function puts the graphs of a batch into one, but the edges still count from 0 in every graph.

expect: samples-mixed
line: edges.append(graph["edge_index"])
source: https://github.com/pyg-team/pytorch_geometric/issues/594
metric: test accuracy, higher is better
"""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

ap = argparse.ArgumentParser()
ap.add_argument("--seed", type=int, default=0)
seed = ap.parse_args().seed
torch.manual_seed(seed)
random.seed(seed)


def molecule():
    """A ring or a chain of atoms of two kinds: active if like atoms are mostly bound to each other."""
    n = random.randint(6, 14)
    active = random.random() < 0.5
    kind = torch.zeros(n, dtype=torch.long)
    for i in range(1, n):
        stay = random.random() < (0.85 if active else 0.15)
        kind[i] = kind[i - 1] if stay else 1 - kind[i - 1]
    src = torch.arange(n - 1)
    edge = torch.stack([src, src + 1])
    return {"x": nn.functional.one_hot(kind, 2).float(), "edge_index": torch.cat([edge, edge.flip(0)], 1), "y": int(active)}


def collate(graphs):
    xs, edges, batch, ys = [], [], [], []
    count = 0
    for i, graph in enumerate(graphs):
        xs.append(graph["x"])
        edges.append(graph["edge_index"])
        batch += [i] * len(graph["x"])
        ys.append(graph["y"])
        count += len(graph["x"])
    return torch.cat(xs), torch.cat(edges, 1), torch.tensor(batch), torch.tensor(ys)


class GraphConv(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.own = nn.Linear(d_in, d_out)
        self.other = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x, edge_index):
        src, dst = edge_index
        message = torch.zeros_like(x).index_add_(0, dst, x[src])
        return torch.relu(self.own(x) + self.other(message))


class GNN(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.conv1 = GraphConv(2, hidden)
        self.conv2 = GraphConv(hidden, hidden)
        self.lin = nn.Linear(hidden, 2)

    def forward(self, x, edge_index, batch, n_graphs):
        x = self.conv2(self.conv1(x, edge_index), edge_index)
        pooled = torch.zeros(n_graphs, x.size(1)).index_add_(0, batch, x)
        return self.lin(pooled / torch.bincount(batch, minlength=n_graphs)[:, None])


train_loader = DataLoader([molecule() for _ in range(960)], batch_size=24, shuffle=True, collate_fn=collate)
test_loader = DataLoader([molecule() for _ in range(480)], batch_size=24, collate_fn=collate)
model = GNN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

for epoch in range(10):
    model.train()
    total = 0
    for x, edge_index, batch, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x, edge_index, batch, len(y)), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    print(f"Epoch: {epoch:03d}, Loss: {total / 960:.4f}")

model.eval()
correct = 0
with torch.no_grad():
    for x, edge_index, batch, y in test_loader:
        correct += int((model(x, edge_index, batch, len(y)).argmax(1) == y).sum())
print("metric:", correct / 480)
