"""Stochastic weight averaging with its own rate, and update_bn at the end: forward passes in training mode without a gradient.

expect: nothing
metric: test accuracy of the averaged network, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=12)
parser.add_argument("--swa_start", type=int, default=8)
args = parser.parse_args()
torch.manual_seed(args.seed)

x, y = make_classification(4000, 24, n_informative=16, n_classes=6, n_clusters_per_class=1, class_sep=1.5, random_state=args.seed)
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
x = (x - x.mean(0)) / x.std(0)
train_loader = DataLoader(TensorDataset(x[:3200], y[:3200]), batch_size=64, shuffle=True)
test_loader = DataLoader(TensorDataset(x[3200:], y[3200:]), batch_size=200)

model = nn.Sequential(
    nn.Linear(24, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(),
    nn.Linear(64, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(),
    nn.Linear(64, 6),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.swa_start)
swa_model = AveragedModel(model)
swa_scheduler = SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)
criterion = nn.CrossEntropyLoss()

for epoch in range(args.epochs):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch >= args.swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    print(f"epoch {epoch + 1} lr {optimizer.param_groups[0]['lr']:.4f} loss {total / len(train_loader):.4f}")

update_bn(train_loader, swa_model)
swa_model.eval()
with torch.no_grad():
    hits = sum((swa_model(xb).argmax(1) == yb).sum().item() for xb, yb in test_loader)
print("metric:", hits / 800)
