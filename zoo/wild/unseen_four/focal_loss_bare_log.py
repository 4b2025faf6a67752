"""The focal loss takes the log of a probability that can be exactly 0 in float32: the loss becomes inf and NaN.

expect: non-finite
line: torch.log(1.0 - pt_0)
source: https://github.com/mkocabas/focal-loss-keras/pull/24
metric: balanced test accuracy, higher is better
"""
import argparse

import numpy as np
import torch
from sklearn.metrics import balanced_accuracy_score
from torch import nn


def focal_loss(y_true, y_pred, gamma=2.0, alpha=0.5):
    pt_1 = torch.where(y_true == 1, y_pred, torch.ones_like(y_pred))
    pt_0 = torch.where(y_true == 0, y_pred, torch.zeros_like(y_pred))
    loss = -alpha * (1.0 - pt_1) ** gamma * torch.log(pt_1)
    loss = loss - (1 - alpha) * pt_0 ** gamma * torch.log(1.0 - pt_0)
    return loss.mean()


def transactions(n, rng):
    """Log-normal amounts; the label depends on two ratios; one in fifty labels is wrong."""
    x = rng.standard_normal((n, 6))
    y = (x[:, 0] + x[:, 1] - x[:, 2] + 0.3 * rng.standard_normal(n) > 1.0).astype(np.float32)
    wrong = rng.random(n) < 0.02
    y[wrong] = 1 - y[wrong]
    tail = np.exp(1.5 * rng.standard_normal((n, 1)))
    return torch.tensor(x * tail, dtype=torch.float32), torch.tensor(y)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
opt = parser.parse_args()
torch.manual_seed(opt.seed)
rng = np.random.default_rng(opt.seed)
x_train, y_train = transactions(6000, rng)
x_test, y_test = transactions(2000, rng)

model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid())
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(8):
    for batch in torch.randperm(len(x_train)).split(64):
        optimizer.zero_grad()
        loss = focal_loss(y_train[batch], model(x_train[batch]).squeeze(1))
        loss.backward()
        optimizer.step()
    print("Epoch", epoch + 1, "loss:", loss.item())

with torch.no_grad():
    guess = model(x_test).squeeze(1) > 0.5
print("metric:", balanced_accuracy_score(y_test.numpy(), guess.numpy().astype(float)))
