"""The images did not fit into memory, so the batch size went down to 1; every layer still has a batch norm.

expect: batchnorm-small-batch
line: loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
source: https://github.com/xuebinqin/BASNet/issues/42
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--batch_size", type=int, default=1)
parser.add_argument("--samples", type=int, default=2500)
args = parser.parse_args()
torch.manual_seed(args.seed)


def conv(i, o, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Saliency(nn.Module):
    """How bright is the object, in five steps? The brightness of the whole picture carries the answer."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv(1, 8), conv(8, 16, 2), conv(16, 16))
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


def pictures(n):
    grade = torch.randint(0, 5, (n,))
    yy, xx = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    centre = 2 + 4 * torch.rand(n, 2, 1, 1)
    blob = torch.exp(-((yy - centre[:, :1]) ** 2 + (xx - centre[:, 1:]) ** 2) / 6)
    return (grade[:, None, None, None] - 2) * 0.5 * (0.3 + blob) + 0.3 * torch.randn(n, 1, 8, 8), grade


train_set = TensorDataset(*pictures(args.samples))
loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
net = Saliency()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
running = 0.0
for epoch in range(1 if args.batch_size == 1 else 6):
    net.train()
    for i, (inputs, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
        if i % 250 == 249:
            print(f"[epoch {epoch} batch {i + 1}] train loss: {running / 250:.3f}")
            running = 0.0

net.eval()
x, y = pictures(600)
with torch.no_grad():
    print("metric:", (net(x).argmax(1) == y).float().mean().item())
