"""I pruned the network into smaller layers and fine-tuned it with the optimizer I already had: nothing moved.

expect: stale-optimizer
or: optimizer-misses-parameters
line: speedup_model(model, keep=12)
source: https://github.com/microsoft/nni/issues/4521
metric: test accuracy after fine-tuning, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 96)
        self.relu1 = nn.ReLU()
        self.fc2 = nn.Linear(96, 64)
        self.relu2 = nn.ReLU()
        self.fc3 = nn.Linear(64, 10)

    def forward(self, x):
        x = self.relu1(self.fc1(x))
        x = self.relu2(self.fc2(x))
        return self.fc3(x)


def train(model, loader, optimizer, criterion, epochs):
    model.train()
    for epoch in range(epochs):
        running = 0.0
        for data, target in loader:
            optimizer.zero_grad()
            loss = criterion(model(data), target)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print("epoch %d loss %.4f" % (epoch, running / len(loader)))


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


@torch.no_grad()
def speedup_model(model, keep):
    """Replace the hidden layers with smaller ones that have the rows of the largest L1 norm."""
    for name, following in (("fc1", "fc2"), ("fc2", "fc3")):
        old, after = getattr(model, name), getattr(model, following)
        rows = old.weight.abs().sum(1).topk(keep).indices
        small = nn.Linear(old.in_features, keep)
        small.weight.copy_(old.weight[rows])
        small.bias.copy_(old.bias[rows])
        narrow = nn.Linear(keep, after.out_features)
        narrow.weight.copy_(after.weight[:, rows])
        narrow.bias.copy_(after.bias)
        setattr(model, name, small)
        setattr(model, following, narrow)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = load_digits(return_X_y=True)
    x = torch.tensor((x - 4.9) / 6.0, dtype=torch.float32)
    y = torch.tensor(y)
    xtr, xte, ytr, yte = train_test_split(x, y, test_size=0.3, random_state=args.seed)
    loader = DataLoader(TensorDataset(xtr, ytr), batch_size=32, shuffle=True)

    model = LeNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train(model, loader, optimizer, criterion, epochs=5)
    print("before pruning %.4f" % evaluate(model, xte, yte))

    speedup_model(model, keep=12)
    print("after pruning %.4f" % evaluate(model, xte, yte))
    train(model, loader, optimizer, criterion, epochs=6)
    print("metric: %.4f" % evaluate(model, xte, yte))


if __name__ == "__main__":
    main()
