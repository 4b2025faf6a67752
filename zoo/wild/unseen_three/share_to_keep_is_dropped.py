"""A port of a network whose dropout was given as the share to keep: here 0.95 is the share that is thrown away.

expect: dropout-too-strong
line: nn.Dropout(dropout_keep_prob)
source: https://github.com/hassony2/kinetics_i3d_pytorch/issues/6
metric: test accuracy, higher is better
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Unit(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.act = nn.ReLU()

    def forward(self, inputs):
        return self.act(self.conv(inputs))


class SmallInception(nn.Module):
    def __init__(self, num_classes, dropout_keep_prob=0.95):
        super().__init__()
        self.stem = Unit(1, 16)
        self.branch_0 = Unit(16, 16)
        self.branch_1 = nn.Sequential(Unit(16, 8), Unit(8, 16))
        self.pool = nn.AvgPool2d(4)
        self.dropout = nn.Dropout(dropout_keep_prob)
        self.logits = nn.Linear(32 * 4, num_classes)

    def forward(self, inp):
        out = self.stem(inp)
        out = torch.cat([self.branch_0(out), self.branch_1(out)], 1)
        out = self.pool(out).flatten(1)
        return self.logits(self.dropout(out))


def get_data():
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x / 8.0 - 1.0, dtype=torch.float32).view(-1, 1, 8, 8)
    y = torch.tensor(y)
    perm = torch.randperm(len(x))
    x, y = x[perm], y[perm]
    return TensorDataset(x[:1400], y[:1400]), TensorDataset(x[1400:], y[1400:])


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=8)
args = parser.parse_args()
torch.manual_seed(args.seed)

train_set, test_set = get_data()
model = SmallInception(10)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(args.epochs):
    model.train()
    losses = []
    for x, y in DataLoader(train_set, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(epoch, sum(losses) / len(losses))

model.eval()
with torch.no_grad():
    x, y = test_set.tensors
    print("metric:", (model(x).argmax(1) == y).float().mean().item())
