"""Training and testing never call train() or eval(): the test goes through dropout and the statistics of its small batches.

expect: train-mode-evaluation
line: outputs = net(inputs)
source: https://github.com/sgadgil6/cnslab_fmri/issues/24
metric: test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class STGCN(nn.Module):
    """Time convolution and graph convolution over regions of the brain."""

    def __init__(self, regions=8, hidden=16):
        super().__init__()
        self.adjacency = nn.Parameter(torch.eye(regions) + 0.05 * torch.rand(regions, regions))
        self.tcn = nn.Conv2d(1, hidden, (5, 1), padding=(2, 0))
        self.bn = nn.BatchNorm2d(hidden)
        self.gcn = nn.Conv2d(hidden, hidden, 1)
        self.bn2 = nn.BatchNorm2d(hidden)
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(hidden, 2)

    def forward(self, x):
        x = F.relu(self.bn(self.tcn(x)))
        x = torch.einsum("bctv,vw->bctw", self.gcn(x), self.adjacency)
        x = self.dropout(F.relu(self.bn2(x)))
        return self.fc(x.mean((2, 3)))


def subjects(n, rng):
    y = rng.integers(0, 2, n)
    t = np.arange(32)[None, :, None]
    freq = np.where(y == 1, 0.75, 0.55)[:, None, None]
    x = np.sin(freq * t + rng.uniform(0, 6.28, (n, 1, 8))) + 1.2 * rng.standard_normal((n, 32, 8))
    x *= rng.uniform(0.6, 1.6, (n, 1, 1))
    return torch.tensor(x[:, None], dtype=torch.float32), torch.tensor(y)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)
train_data, train_label = subjects(400, rng)
test_data, test_label = subjects(300, rng)
net = STGCN()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=0.003)

for ep in range(320):
    idx_batch = np.random.default_rng(1000 * args.seed + ep).permutation(len(train_data))[:64]
    optimizer.zero_grad()
    outputs = net(train_data[idx_batch])
    loss = criterion(outputs, train_label[idx_batch])
    loss.backward()
    optimizer.step()
    if ep % 40 == 0:
        print("epoch %3d, loss %.4f" % (ep, loss.item()))

prediction = []
with torch.no_grad():
    for start in range(0, len(test_data), 2):
        inputs = test_data[start : start + 2]
        outputs = net(inputs)
        prediction.append(outputs.argmax(1))
print("metric: %.4f" % (torch.cat(prediction) == test_label).float().mean())
