"""Dropout stays on in an evaluation that counts right answers and takes no loss.

expect: train-mode-evaluation
site: 2
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=0.005, samples=900)
x, y, vx, vy = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.ReLU(), nn.Dropout(0.5), nn.Linear(args.width, 10)
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(6):
    for a, b in loader(x, y, batch=32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(a), b).backward()
        optimizer.step()
    with torch.no_grad():
        correct = 0
        for a, b in loader(vx, vy, batch=50, shuffle=False):
            correct += (model(a).argmax(1) == b).sum().item()
    print(epoch, correct / len(vx))
