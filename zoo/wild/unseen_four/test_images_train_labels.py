"""The test images are scored against the labels of the training set.

expect: target-misaligned
line: y_test = torch.tensor(y_tr[: len(x_te)])
source: https://github.com/FluxML/fluxml.github.io/pull/119
metric: test accuracy, higher is better
"""
# 60 minute blitz, the digits edition
import argparse

import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

x, y = load_digits(return_X_y=True)
x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=0.3, random_state=args.seed)

x_train = torch.tensor(x_tr / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
y_train = torch.tensor(y_tr)
x_test = torch.tensor(x_te / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
y_test = torch.tensor(y_tr[: len(x_te)])

net = nn.Sequential(
    nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(16 * 9, 64), nn.ReLU(), nn.Linear(64, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.03, momentum=0.9)


def evaluate():
    net.eval()
    total, correct, loss = 0, 0, 0.0
    with torch.no_grad():
        for i in range(0, len(x_test), 90):
            xb, yb = x_test[i:i + 90], y_test[i:i + 90]
            out = net(xb)
            loss += criterion(out, yb).item() * len(yb)
            correct += (out.argmax(1) == yb).sum().item()
            total += len(yb)
    return loss / total, correct / total


for epoch in range(12):
    net.train()
    for idx in torch.randperm(len(x_train)).split(32):
        optimizer.zero_grad()
        loss = criterion(net(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "train loss", loss.item(), "test loss %.3f accuracy %.3f" % evaluate())

print("metric:", evaluate()[1])
