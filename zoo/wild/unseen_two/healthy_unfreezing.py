"""Gradual unfreezing after pretraining: half of the network is frozen at first and joins in later, at a smaller rate.

expect: nothing
metric: test accuracy on the new task, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
y = torch.tensor(digits.target)
old, new = y < 5, y >= 5


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU())
        self.trunk = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 48), nn.ReLU())
        self.head = nn.Linear(48, 5)

    def forward(self, x):
        return self.head(self.trunk(self.stem(x)))


def run(net, optimizer, xs, ys, epochs, tag):
    for epoch in range(epochs):
        for rows in torch.randperm(len(xs)).split(24):
            loss = F.cross_entropy(net(xs[rows]), ys[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(tag, epoch, loss.item())


net = Net()
run(net, torch.optim.Adam(net.parameters(), lr=1e-3), x[old], y[old], 4, "pretraining")

# the new task: five other digits, few of them
new_x, new_y = x[new], y[new] - 5
order = torch.randperm(len(new_x))
few, rest = order[:240], order[240:]
net.head = nn.Linear(48, 5)
net.stem.requires_grad_(False)
net.trunk.requires_grad_(False)
optimizer = torch.optim.Adam(net.head.parameters(), lr=3e-3)
run(net, optimizer, new_x[few], new_y[few], 8, "head only")
net.trunk.requires_grad_(True)
optimizer.add_param_group({"params": net.trunk.parameters(), "lr": 5e-4})
run(net, optimizer, new_x[few], new_y[few], 8, "head and trunk")
with torch.no_grad():
    print("metric:", (net(new_x[rest]).argmax(1) == new_y[rest]).float().mean().item())
