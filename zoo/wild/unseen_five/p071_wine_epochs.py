"""validate() is called once before training, for a first figure, and leaves the model in eval mode: its batch norm never sees the raw features.

expect: eval-mode-training
line: model.eval()
source: https://emitechlogic.com/pytorch-debugging-checklist-a-systematic-framework-to-fix-models-that-wont-learn
metric: test accuracy, higher is better
"""

import argparse

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build(width=32):
    return nn.Sequential(
        nn.BatchNorm1d(13), nn.Linear(13, width), nn.ReLU(), nn.BatchNorm1d(width), nn.Dropout(0.2), nn.Linear(width, 3),
    )


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def train_one_epoch(model, loader, optimizer, criterion):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_wine(return_X_y=True)
    order = torch.randperm(len(x))
    x, y = torch.tensor(x, dtype=torch.float32)[order], torch.tensor(y)[order]
    loader = DataLoader(TensorDataset(x[:110], y[:110]), batch_size=11, shuffle=True)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()
    print("before training:", validate(model, x[110:], y[110:]))
    for epoch in range(args.epochs):
        loss = train_one_epoch(model, loader, optimizer, criterion)
        accuracy = validate(model, x[110:], y[110:])
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d} loss {loss:.4f} test {accuracy:.4f}")
    print("metric: %.4f" % accuracy)


if __name__ == "__main__":
    main()
