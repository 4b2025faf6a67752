"""Stochastic weight averaging: a constant high rate at the end, an averaged copy, and batch norm statistics computed anew for it.

expect: nothing
style: swa_utils, SWALR, update_bn
metric: test accuracy of the average, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

X, y = make_classification(3000, 24, n_informative=14, n_classes=3, class_sep=1.5, random_state=args.seed)
X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
loader = DataLoader(TensorDataset(X[:2200], y[:2200]), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(24, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 3))
swa_model = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
swa_scheduler = SWALR(optimizer, swa_lr=0.03)
loss_fn, swa_start = nn.CrossEntropyLoss(), 8

for epoch in range(16):
    model.train()
    for input, target in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(input), target)
        loss.backward()
        optimizer.step()
    if epoch > swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    print("epoch", epoch, "loss", loss.item(), "lr", optimizer.param_groups[0]["lr"])

update_bn(loader, swa_model)
swa_model.eval()
with torch.no_grad():
    print("metric:", (swa_model(X[2200:]).argmax(1) == y[2200:]).float().mean().item())
