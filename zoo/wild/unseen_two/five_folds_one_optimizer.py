"""Every fold gets a fresh network, the optimizer was made once, for the first of them.

expect: stale-optimizer
or: optimizer-misses-parameters
line: net = Net(X.shape[1])  # start from scratch
source: https://github.com/pytorch/pytorch/issues/54765
metric: mean accuracy over the folds, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
SEED = args.seed
np.random.seed(SEED)
torch.manual_seed(SEED)

X, y = make_classification(1500, 16, n_informative=10, n_classes=4, n_clusters_per_class=1, random_state=SEED)
X = ((X - X.mean(0)) / X.std(0)).astype(np.float32)


class Net(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.bn = nn.BatchNorm1d(n_in)
        self.fc1 = nn.Linear(n_in, 48)
        self.fc2 = nn.Linear(48, 4)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.fc1(self.bn(x)))))


def run_epoch(net, optimizer, xs, ys, batch=50):
    net.train()
    losses = []
    for rows in torch.randperm(len(xs)).split(batch):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(xs[rows]), ys[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.mean(losses)


net = Net(X.shape[1])
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
scores = []
for fold, (train_idx, valid_idx) in enumerate(StratifiedKFold(5, shuffle=True, random_state=SEED).split(X, y)):
    if fold > 0:
        net = Net(X.shape[1])  # start from scratch
    xs, ys = torch.from_numpy(X[train_idx]), torch.from_numpy(y[train_idx])
    for epoch in range(6):
        train_loss = run_epoch(net, optimizer, xs, ys)
    net.eval()
    with torch.no_grad():
        pred = net(torch.from_numpy(X[valid_idx])).argmax(1).numpy()
    scores.append((pred == y[valid_idx]).mean())
    print(f"fold {fold}: train loss {train_loss:.4f}, accuracy {scores[-1]:.4f}")
print("metric:", float(np.mean(scores)))
