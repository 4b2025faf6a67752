"""The usual test: one batch is learnt by heart, on purpose.

expect: nothing
half: first
"""

import torch
from common import arguments, digits
from torch import nn

args = arguments(width=64, lr=2e-3, steps=150)
x, y, _, _ = digits(600)
x, y = x[:32], y[:32]
model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step in range(args.steps):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
