"""AdamW with a weight decay of 50.

expect: weight-decay-too-strong
site: 0
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, lr=2e-3, steps=250, samples=1000)
x, y, _, _ = digits(args.samples)

model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, args.width), nn.ReLU(), nn.Linear(args.width, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=50.0)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
