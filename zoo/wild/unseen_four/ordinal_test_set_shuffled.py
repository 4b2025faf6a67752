"""The predictions come from a shuffled test loader and are compared with the labels in their old order.

expect: target-misaligned
line: test_loader = DataLoader(
source: https://github.com/ck37/coral-ordinal/issues/6
metric: mean absolute error of the predicted grade, lower is better
"""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
NUM_CLASSES = 6


class CoralOrdinal(nn.Module):
    """One common score and a threshold for each step between grades."""

    def __init__(self, features):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
        self.thresholds = nn.Parameter(torch.linspace(1, -1, NUM_CLASSES - 1))

    def forward(self, x):
        return self.score(x) + self.thresholds


def levels(y):
    return (y[:, None] > torch.arange(NUM_CLASSES - 1)).float()


X, value = make_friedman1(3000, noise=0.5, random_state=args.seed)
grade = np.searchsorted(np.quantile(value, np.arange(1, NUM_CLASSES) / NUM_CLASSES), value)
X = torch.tensor((X - 0.5) * 3.4, dtype=torch.float32)
grade = torch.tensor(grade)
x_train, y_train, x_test, y_test = X[:2400], grade[:2400], X[2400:], grade[2400:]

train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=48, shuffle=True)
test_loader = DataLoader(TensorDataset(x_test, y_test), batch_size=48, shuffle=True)

model = CoralOrdinal(X.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    model.train()
    running = 0.0
    for xb, yb in train_loader:
        loss = F.binary_cross_entropy_with_logits(model(xb), levels(yb))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    print("epoch", epoch, "loss", round(running / len(train_loader), 4))

model.eval()
predicted = []
with torch.no_grad():
    for xb, _ in test_loader:
        predicted.append((model(xb) > 0).sum(1))
predicted = torch.cat(predicted)
accuracy = (predicted == y_test).float().mean().item()
print("accuracy", round(accuracy, 4))
print("metric:", (predicted - y_test).abs().float().mean().item())
