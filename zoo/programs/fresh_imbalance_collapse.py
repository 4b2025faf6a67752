"""Weights of classes that punish everything but the rarest class.

expect: class-collapse
or: not-learning
half: fresh
net: mlp
"""

import torch
from common import arguments, blobs, loader
from torch import nn

args = arguments(width=32, lr=0.01, samples=900)
x, y = blobs(args.samples, classes=5, features=10, spread=3.0)
model = nn.Sequential(nn.Linear(10, args.width), nn.ReLU(), nn.Linear(args.width, 5))
weights = torch.tensor([1.0, 1e-4, 1e-4, 1e-4, 1e-4])
criterion = nn.CrossEntropyLoss(weight=weights)
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(6):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
