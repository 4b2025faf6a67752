"""Forty noisy examples, and a network with a hundred times as many weights.

expect: overfitting
half: second
"""

import torch
from common import arguments, blobs, loader
from torch import nn

args = arguments(width=256, lr=3e-3)
x, y = blobs(340, spread=3.0)
train, test = (x[:40], y[:40]), (x[40:], y[40:])
model = nn.Sequential(
    nn.Linear(10, args.width), nn.ReLU(), nn.Linear(args.width, args.width), nn.ReLU(),
    nn.Linear(args.width, 4),
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(60):
    model.train()
    for a, b in loader(*train, batch=10):
        optimizer.zero_grad()
        criterion(model(a), b).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(a), b).item() for a, b in loader(*test, batch=100)]
    if epoch % 10 == 0:
        print(epoch, sum(losses) / len(losses))
