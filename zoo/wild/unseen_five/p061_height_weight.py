"""Two clouds around (92, 92) are to be told apart by a sigmoid network, from the raw numbers.

expect: input-not-normalized
line: x_data = torch.tensor(points, dtype=torch.float32)
source: https://newbe.dev/pytorch-binary-classification-same-network-structure-simpler-data-but-worse-performance
metric: accuracy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, input_size, H1, output_size):
        super().__init__()
        self.linear = nn.Linear(input_size, H1)
        self.linear2 = nn.Linear(H1, output_size)

    def forward(self, x):
        x = torch.sigmoid(self.linear(x))
        x = torch.sigmoid(self.linear2(x))
        return x

    def predict(self, x):
        return (self.forward(x) >= 0.5).float()


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)
angle = rng.uniform(0, 2 * np.pi, 600)
inner = rng.integers(0, 2, 600)
radius = np.where(inner == 1, 2.0, 6.0) + 0.6 * rng.standard_normal(600)
points = 92 + np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
x_data = torch.tensor(points, dtype=torch.float32)
y_data = torch.tensor(inner, dtype=torch.float32).reshape(600, 1)

model = Model(2, 10, 1)
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
epochs = 1200
losses = []
for i in range(epochs):
    y_pred = model.forward(x_data)
    loss = criterion(y_pred, y_data)
    if i % 200 == 0:
        print("epoch:", i, "loss:", loss.item())
    losses.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print("metric: %.4f" % (model.predict(x_data) == y_data).float().mean())
