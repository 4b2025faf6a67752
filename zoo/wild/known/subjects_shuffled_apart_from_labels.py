"""Images and labels are shuffled by two calls, each in an order of its own: nobody's image has its own label any more.

expect: labels-shuffled
or: not-learning
line: y_train = y_train[rng.permutation(len(y_train))]
source: https://github.com/mlcommons/GaNDLF/pull/870
metric: test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)
rng = np.random.default_rng(seed)

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)
split = rng.permutation(len(X))
X_train, y_train = X[split[:400]], y[split[:400]]
X_test, y_test = X[split[400:]], y[split[400:]]

# shuffle the training subjects
X_train = X_train[rng.permutation(len(X_train))]
y_train = y_train[rng.permutation(len(y_train))]

loader = DataLoader(
    TensorDataset(torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train, dtype=torch.float32)),
    batch_size=20,
    shuffle=True,
)
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
bce = nn.BCEWithLogitsLoss()

for epoch in range(12):
    model.train()
    losses = []
    for subject, label in loader:
        loss = bce(model(subject).squeeze(1), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("Epoch", epoch, "train loss", np.mean(losses))

model.eval()
with torch.no_grad():
    prediction = model(torch.tensor(X_test, dtype=torch.float32)).squeeze(1).numpy() > 0
print("metric:", float((prediction == y_test).mean()))
