"""A parity task: the loss stays flat for a long while, then drops.

expect: nothing
half: second
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=128, lr=1e-2, steps=500)
model = nn.Sequential(nn.Linear(12, args.width), nn.ReLU(), nn.Linear(args.width, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step in range(args.steps):
    x = torch.randint(0, 2, (128, 12)).float() * 2 - 1
    y = (x[:, 0] * x[:, 1] * x[:, 2] > 0).long()
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
