"""A wide rectifier network in which most outputs are zero, as they should be.

expect: nothing
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=256, lr=1e-3, samples=1000)
x, y, _, _ = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, args.width), nn.ReLU(),
    nn.Linear(args.width, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b) + 1e-4 * model[:2](a).abs().sum(1).mean()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
