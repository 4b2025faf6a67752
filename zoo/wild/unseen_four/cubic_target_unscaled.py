"""The targets run up to 6.4e10 and are not normalised: the network cannot get there in any sensible time.

expect: target-not-normalized
or: learning-rate-too-low
line: train_y = target[train]
source: https://discuss.pytorch.org/t/neural-network-could-not-learn-on-this-type-of-data-why/96648/5
metric: R2 on held-out points, higher is better
"""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
seed = p.parse_args().seed
torch.manual_seed(seed)
rng = np.random.default_rng(seed)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(1, 50)
        self.fc2 = nn.Linear(50, 50)
        self.fc3 = nn.Linear(50, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


inputs = torch.arange(1, 4001).float().unsqueeze(1)
target = inputs ** 3
order = torch.from_numpy(rng.permutation(len(inputs)))
train, test = order[:3200], order[3200:]

mean, std = inputs[train].mean(), inputs[train].std()
train_x = (inputs[train] - mean) / std
test_x = (inputs[test] - mean) / std
shift, scale = 0.0, 1.0
train_y = target[train]

model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.MSELoss()

steps = 0
for epoch in range(30):
    for idx in torch.randperm(len(train)).split(128):
        optimizer.zero_grad()
        loss = criterion(model(train_x[idx]), train_y[idx])
        loss.backward()
        optimizer.step()
        steps += 1
    if epoch % 5 == 0:
        print(f"epoch {epoch} step {steps} loss {loss.item():.4g}")

with torch.no_grad():
    pred = model(test_x) * scale + shift
truth = target[test]
r2 = 1 - ((pred - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
print("metric:", r2.item())
