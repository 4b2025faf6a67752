"""OneCycleLR is laid out in batches and stepped once an epoch: the rate never leaves the foot of its first slope.

expect: learning-rate-too-low
line: scheduler.step()
source: https://github.com/ageron/handson-mlp/issues/28
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader):
    model.eval()
    total = hits = 0
    with torch.no_grad():
        for X, y in loader:
            hits += (model(X).argmax(dim=1) == y).sum().item()
            total += len(y)
    return hits / total


def train(model, optimizer, criterion, train_loader, valid_loader, n_epochs, scheduler):
    for epoch in range(n_epochs):
        model.train()
        running = 0.0
        for X_batch, y_batch in train_loader:
            loss = criterion(model(X_batch), y_batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        scheduler.step()
        print(f"Epoch {epoch + 1}/{n_epochs}, train loss {running / len(train_loader):.4f}, "
              f"valid {evaluate(model, valid_loader):.3f}")


# -- data
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
X, y = load_digits(return_X_y=True)
X = torch.tensor((X - X.mean()) / X.std(), dtype=torch.float32)
y = torch.tensor(y)
shuffled = torch.randperm(len(X))
X, y = X[shuffled], y[shuffled]
train_loader = DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=64, shuffle=True)
valid_loader = DataLoader(TensorDataset(X[1400:], y[1400:]), batch_size=200)

# -- model
model = nn.Sequential(
    nn.Linear(64, 100), nn.SiLU(),
    nn.Linear(100, 100), nn.SiLU(),
    nn.Linear(100, 100), nn.SiLU(),
    nn.Linear(100, 10),
)
for module in model:
    if isinstance(module, nn.Linear):
        nn.init.kaiming_normal_(module.weight)
        nn.init.zeros_(module.bias)

# -- training
n_epochs = 8
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=0.1, epochs=n_epochs, steps_per_epoch=len(train_loader), cycle_momentum=False)
train(model, optimizer, nn.CrossEntropyLoss(), train_loader, valid_loader, n_epochs, scheduler)
print("metric:", evaluate(model, valid_loader))
