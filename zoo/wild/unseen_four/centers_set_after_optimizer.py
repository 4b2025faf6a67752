"""The k-means centres become a new Parameter after the optimizer was made, so they never move.

expect: stale-optimizer
or: optimizer-misses-parameters
line: model.assignment.centers = nn.Parameter
source: https://github.com/vlukiyanov/pt-dec/issues/18
metric: test accuracy, higher is better
"""

import argparse

import torch
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SoftAssignment(nn.Module):
    """Student's t similarity to every cluster centre, normalised over the centres."""

    def __init__(self, clusters, dim, alpha=5.0):
        super().__init__()
        self.alpha = alpha
        self.centers = nn.Parameter(torch.randn(clusters, dim))

    def forward(self, z):
        q = (1.0 + torch.cdist(z, self.centers).pow(2) / self.alpha).pow(-(self.alpha + 1) / 2)
        return q / q.sum(1, keepdim=True)


class ClusterClassifier(nn.Module):
    def __init__(self, dim, clusters, classes):
        super().__init__()
        self.assignment = SoftAssignment(clusters, dim)
        self.out = nn.Linear(clusters, classes)

    def forward(self, z):
        return self.out(self.assignment(z))


def accuracy(model, z, y):
    model.eval()
    with torch.no_grad():
        return (model(z).argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clusters", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = load_digits(return_X_y=True)
    z = PCA(16, random_state=0).fit_transform(x)
    z = torch.tensor(z / z.std(), dtype=torch.float32)
    y = torch.tensor(y)
    perm = torch.randperm(len(y))
    tr, te = perm[:1400], perm[1400:]

    model = ClusterClassifier(16, args.clusters, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)

    km = KMeans(args.clusters, n_init=4, random_state=args.seed).fit(z[tr].numpy())
    model.assignment.centers = nn.Parameter(torch.tensor(km.cluster_centers_, dtype=torch.float32))

    loader = DataLoader(TensorDataset(z[tr], y[tr]), 64, shuffle=True)
    for epoch in range(20):
        model.train()
        for zb, yb in loader:
            loss = nn.functional.cross_entropy(model(zb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            print(epoch + 1, round(loss.item(), 4), round(accuracy(model, z[te], y[te]), 4))
    print("metric:", accuracy(model, z[te], y[te]))
