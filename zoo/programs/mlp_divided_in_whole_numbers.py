"""Bytes are divided by 255 as whole numbers: nothing is left.

expect: input-collapsed
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=48, lr=1e-3, steps=150, samples=900)
x, y, _, _ = digits(args.samples, scale=False)
x = (x * 15).to(torch.uint8) // 255
x = x.float()

model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
