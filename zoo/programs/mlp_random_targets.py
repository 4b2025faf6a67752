"""The targets have nothing to do with the inputs.

expect: not-learning
or: class-collapse
half: first
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=48, lr=1e-3, steps=250)
model = nn.Sequential(nn.Linear(10, args.width), nn.ReLU(), nn.Linear(args.width, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step in range(args.steps):
    a, b = torch.randn(64, 10), torch.randint(4, (64,))
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
