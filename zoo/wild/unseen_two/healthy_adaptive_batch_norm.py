"""Test-time adaptation: the batch norms stay in training mode on new hospitals on purpose, everything else is in eval mode.

expect: nothing
metric: accuracy on the hospitals with other scanners, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(block(1, 16), nn.MaxPool2d(2), block(16, 32), nn.MaxPool2d(2))
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.drop(self.body(x).flatten(1)))


def adapt_batch_norm(model):
    """eval(), except that batch norm uses the statistics of the batch at hand (Nado et al., 2020)."""
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.train()
    return model


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 8 - 1
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
x, y = x[order], y[order]

model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(7):
    model.train()
    for rows in torch.randperm(1300).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item())

adapt_batch_norm(model)
scores = []
with torch.no_grad():
    for contrast, brightness in ((1.0, 0.0), (0.5, 0.4), (1.6, -0.5), (0.7, 0.8)):
        for rows in torch.arange(1300, 1797).split(100):
            scan = contrast * x[rows] + brightness
            scores.append((model(scan).argmax(1) == y[rows]).float().mean().item())
print("metric:", sum(scores) / len(scores))
