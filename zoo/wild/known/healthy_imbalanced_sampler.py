"""Two percent of the transactions are fraud; a weighted sampler shows both kinds equally often and the score is a ranking.

expect: nothing
style: WeightedRandomSampler with replacement, focal loss, average precision on the untouched test set (looks like repeated data and class imbalance)
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


class FocalLoss(nn.Module):
    def __init__(self, gamma=1.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, targets):
        bce = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        return ((1 - torch.exp(-bce)) ** self.gamma * bce).mean()


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

X, y = make_classification(6000, 14, n_informative=7, weights=[0.98], flip_y=0.002, class_sep=1.3, random_state=args.seed)
X = ((X - X.mean(0)) / X.std(0)).astype(np.float32)
X_train, y_train, X_test, y_test = X[:4000], y[:4000], X[4000:], y[4000:]

counts = np.bincount(y_train)
print("legitimate %d, fraud %d" % tuple(counts))
sampler = WeightedRandomSampler((1.0 / counts)[y_train].tolist(), num_samples=2000, replacement=True)
loader = DataLoader(TensorDataset(torch.from_numpy(X_train), torch.from_numpy(y_train).float()), batch_size=64, sampler=sampler)

model = nn.Sequential(nn.Linear(14, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
criterion = FocalLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-2)
for epoch in range(7):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("epoch %d focal loss %.4f" % (epoch, total / len(loader)))

model.eval()
with torch.no_grad():
    scores = model(torch.from_numpy(X_test)).squeeze(1).numpy()
print("metric: %.4f (prevalence %.4f)" % (average_precision_score(y_test, scores), y_test.mean()))
