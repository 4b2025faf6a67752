"""A training loop in which scheduler.step() was taken for a wrapper of optimizer.step(): the weights never change.

expect: missing-step
line: scheduler.step()
source: https://github.com/pytorch/pytorch/issues/3814
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.optim import Adam
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset


def loaders(seed):
    X, y = load_wine(return_X_y=True)
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X_tr)
    as_set = lambda a, b: TensorDataset(torch.tensor(scaler.transform(a), dtype=torch.float32), torch.tensor(b))
    return DataLoader(as_set(X_tr, y_tr), batch_size=16, shuffle=True), DataLoader(as_set(X_te, y_te), batch_size=64)


def train(model, loader, criterion, scheduler, epochs):
    for epoch in range(epochs):
        running = 0.0
        for x, y in loader:
            scheduler.optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            running += loss.item()
        scheduler.step()
        if epoch % 10 == 0:
            print("epoch", epoch, "loss", running / len(loader), "lr", scheduler.get_last_lr()[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train_loader, test_loader = loaders(args.seed)
    model = nn.Sequential(nn.Linear(13, 32), nn.Tanh(), nn.Linear(32, 3))
    scheduler = ExponentialLR(Adam(model.parameters(), lr=0.01), gamma=0.97)
    train(model, train_loader, nn.CrossEntropyLoss(), scheduler, epochs=40)
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader)
    print("metric:", right / len(test_loader.dataset))


if __name__ == "__main__":
    main()
