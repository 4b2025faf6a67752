"""Stochastic weight averaging with a constant high rate at the end, and batch norm statistics that are brought up to date.

expect: nothing
style: torch.optim.swa_utils, update_bn, evaluation of the average
metric: test accuracy of the averaged network, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
order = torch.randperm(len(x))
loader = DataLoader(TensorDataset(x[order[:1300]], y[order[:1300]]), batch_size=32, shuffle=True, drop_last=True)
x_test, y_test = x[order[1300:]], y[order[1300:]]

model = nn.Sequential(nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 10))
swa_model = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
swa_start, swa_scheduler = 9, SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)

for epoch in range(16):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
    if epoch >= swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    print(f"epoch {epoch} loss {loss.item():.4f} lr {optimizer.param_groups[0]['lr']:.3f}")

update_bn(loader, swa_model)
swa_model.eval()
with torch.no_grad():
    print("metric:", (swa_model(x_test).argmax(1) == y_test).float().mean().item())
