"""The learning rate is far too small: after all epochs the network still gives (nearly) the same answer.

expect: learning-rate-too-low
line: lr=1e-6
source: https://github.com/halwai/bird_classification/issues/12
metric: validation accuracy, higher is better
"""
import argparse

import torch
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, features, species):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.head = nn.Linear(64, species)

    def forward(self, x):
        return self.head(self.body(x))


def evaluate(model, loader):
    model.eval()
    hits = total = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
            total += len(y)
    return hits / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = make_classification(4000, 40, n_informative=20, n_redundant=5, n_classes=6,
                               n_clusters_per_class=1, class_sep=1.5, random_state=args.seed)
    x = StandardScaler().fit_transform(x)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    train = DataLoader(TensorDataset(x[:3200], y[:3200]), batch_size=32, shuffle=True)
    val = DataLoader(TensorDataset(x[3200:], y[3200:]), batch_size=200)

    model = Classifier(40, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9, weight_decay=5e-4)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(8):
        model.train()
        epoch_loss = 0.0
        for xb, yb in train:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item() / len(train)
        print("[%d] loss %.4f val acc %.4f" % (epoch, epoch_loss, evaluate(model, val)))
    print("metric:", evaluate(model, val))


main()
