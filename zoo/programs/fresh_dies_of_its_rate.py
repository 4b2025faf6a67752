"""A plain network of rectifiers that a few large steps kill.

expect: dead-units
or: learning-rate-too-high
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, samples=900)
x, y, _, _ = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, args.width), nn.ReLU(),
    nn.Linear(args.width, 10),
)  # fmt: skip
opt = torch.optim.Adam(model.parameters(), lr=0.8)
for epoch in range(6):
    for a, b in loader(x, y, batch=64):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
