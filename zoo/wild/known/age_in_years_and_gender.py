"""A face network for age and gender: the squared error of an age in years is added to a cross entropy, so gender is hardly learned.

expect: unbalanced-loss-terms
line: loss = age_loss + gender_loss
source: https://arxiv.org/abs/1705.07115
metric: test accuracy of gender, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class FaceNet(nn.Module):
    def __init__(self):
        super(FaceNet, self).__init__()
        self.shared = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 8), nn.ReLU())
        self.age = nn.Linear(8, 1)
        self.gender = nn.Linear(8, 2)

    def forward(self, x):
        feature = self.shared(x)
        return self.age(feature).squeeze(1), self.gender(feature)


def faces(n, rng, wa, wg):
    x = rng.standard_normal((n, 30))
    age = np.clip(40 + 15 * np.tanh(x @ wa) + 2 * rng.standard_normal(n), 1, 90)
    gender = ((x @ wg) * (x @ wg[::-1]) > 0).astype(int)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(age, dtype=torch.float32), torch.tensor(gender))


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)
wa, wg = rng.standard_normal(30) / 5.5, rng.standard_normal(30) / 5.5
train_set, test_set = faces(2500, rng, wa, wg), faces(600, rng, wa, wg)
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)

net = FaceNet()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
mse, ce = nn.MSELoss(), nn.CrossEntropyLoss()

for epoch in range(15):
    a, g = 0.0, 0.0
    for x, age, gender in train_loader:
        age_pred, gender_pred = net(x)
        age_loss = mse(age_pred, age)
        gender_loss = ce(gender_pred, gender)
        loss = age_loss + gender_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        a += age_loss.item()
        g += gender_loss.item()
    print("epoch %d: age %.3f gender %.3f" % (epoch, a / len(train_loader), g / len(train_loader)))

net.eval()
with torch.no_grad():
    x, age, gender = test_set.tensors
    age_pred, gender_pred = net(x)
    print("age error", (age_pred - age).abs().mean().item())
    print("metric: %.4f" % (gender_pred.argmax(1) == gender).float().mean().item())
