"""y_hat has the shape (nodes, 1) and snapshot.y (nodes,): the difference is a square matrix and the model learns the mean.

expect: loss-broadcast
line: cost = cost + torch.mean((y_hat - y) ** 2)
source: https://github.com/benedekrozemberczki/pytorch_geometric_temporal/pull/233
metric: test mean squared error relative to the variance, lower is better
"""

import argparse

import torch
import torch.nn.functional as F


class RecurrentGCN(torch.nn.Module):
    """A graph convolution over the neighbours and a GRU cell over time-lagged features."""

    def __init__(self, node_features, hidden=32):
        super().__init__()
        self.lin_self = torch.nn.Linear(node_features, hidden)
        self.lin_neigh = torch.nn.Linear(node_features, hidden)
        self.linear = torch.nn.Linear(hidden, 1)

    def forward(self, x, adjacency):
        h = self.lin_self(x) + adjacency @ self.lin_neigh(x)
        h = F.relu(h)
        return self.linear(h)


def chickenpox_like(nodes, snapshots):
    """Cases in each county depend on its own past and on the neighbours'."""
    adjacency = (torch.rand(nodes, nodes) < 0.2).float()
    adjacency = adjacency / adjacency.sum(1, keepdim=True).clamp_min(1)
    data = []
    for _ in range(snapshots):
        x = torch.randn(nodes, 4)
        y = torch.tanh(x[:, 0]) + 1.5 * (adjacency @ x)[:, 1] + 0.1 * torch.randn(nodes)
        data.append((x, y))
    return adjacency, data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    adjacency, dataset = chickenpox_like(20, 130)
    train_dataset, test_dataset = dataset[:100], dataset[100:]

    model = RecurrentGCN(node_features=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model.train()
    for epoch in range(40):
        for start in range(0, 100, 20):
            cost = 0
            for x, y in train_dataset[start : start + 20]:
                y_hat = model(x, adjacency)
                cost = cost + torch.mean((y_hat - y) ** 2)
            cost = cost / 20
            cost.backward()
            optimizer.step()
            optimizer.zero_grad()
        if epoch % 10 == 0:
            print("epoch", epoch, "cost", cost.item())

    model.eval()
    with torch.no_grad():
        truth = torch.cat([y for _, y in test_dataset])
        guess = torch.cat([model(x, adjacency).flatten() for x, _ in test_dataset])
    print("metric: {:.4f}".format((F.mse_loss(guess, truth) / truth.var()).item()))


if __name__ == "__main__":
    main()
