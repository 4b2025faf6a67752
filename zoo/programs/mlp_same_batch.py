"""`next(iter(loader))` without shuffling gives the first batch, every time.

expect: repeated-batch
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=1e-3, steps=150, samples=900)
x, y, _, _ = digits(args.samples)
train = loader(x, y, shuffle=False)
model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step in range(args.steps):
    a, b = next(iter(train))
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
