"""Five-fold cross-validation: a new model, scaler and optimizer for each fold, in one process.

expect: nothing
style: scikit-learn around PyTorch, models replaced in a loop
metric: mean accuracy over the folds, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
X, y = load_breast_cancer(return_X_y=True)
scores = []
for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=args.seed).split(X, y)):
    scaler = StandardScaler().fit(X[train])
    x_train, x_test = (torch.tensor(scaler.transform(X[i]), dtype=torch.float32) for i in (train, test))
    y_train, y_test = (torch.tensor(y[i], dtype=torch.float32) for i in (train, test))
    net = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005, weight_decay=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    net.train()
    for epoch in range(12):
        for idx in torch.randperm(len(x_train)).split(32):
            optimizer.zero_grad()
            loss = criterion(net(x_train[idx]).squeeze(-1), y_train[idx])
            loss.backward()
            optimizer.step()
    net.eval()
    with torch.no_grad():
        scores.append(((net(x_test).squeeze(-1) > 0) == y_test.bool()).float().mean().item())
    print("fold", fold, "accuracy", scores[-1])
print("metric:", float(np.mean(scores)))
