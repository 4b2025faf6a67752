"""Transfer learning: a backbone is trained on some digits, frozen, and gets a new head for the others.

expect: nothing
style: requires_grad False, backbone kept in eval mode while the head trains, filter() in the optimizer
metric: test accuracy on the new classes, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


def loaders(x, y, keep, batch):
    mask = torch.isin(y, torch.tensor(keep))
    x, y = x[mask], torch.searchsorted(torch.tensor(keep), y[mask])
    n = int(0.7 * len(x))
    return DataLoader(TensorDataset(x[:n], y[:n]), batch, shuffle=True), (x[n:], y[n:])


def fit(model, loader, epochs, lr, frozen=None):
    optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=lr)
    for epoch in range(epochs):
        model.train()
        if frozen is not None:
            frozen.eval()
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", round(loss.item(), 4))


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
d = load_digits()
p = torch.randperm(len(d.target))
x, y = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1)[p] / 16, torch.tensor(d.target)[p]

backbone = nn.Sequential(
    nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(),
    nn.MaxPool2d(2), nn.Flatten(),
)
source, _ = loaders(x, y, [0, 1, 2, 3, 4, 5], 40)
fit(nn.Sequential(backbone, nn.Linear(768, 6)), source, 5, 2e-3)

for parameter in backbone.parameters():
    parameter.requires_grad = False
target, (x_test, y_test) = loaders(x, y, [6, 7, 8, 9], 20)
model = nn.Sequential(backbone, nn.Linear(768, 4))
fit(model, target, 6, 2e-3, frozen=backbone)
model.eval()
with torch.no_grad():
    print("metric:", (model(x_test).argmax(1) == y_test).float().mean().item())
