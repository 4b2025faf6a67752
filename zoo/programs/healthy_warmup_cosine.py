"""Warm-up from almost zero, then a cosine down to zero at the end.

expect: nothing
half: second
"""

import math

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=96, lr=5e-3, steps=300, samples=1100)
x, y, _, _ = digits(args.samples)
model = nn.Sequential(nn.Linear(64, args.width), nn.GELU(), nn.Linear(args.width, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
warm = args.steps // 10


def factor(step):
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / (args.steps - warm)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 60 == 0:
        print(step, loss.item(), scheduler.get_last_lr()[0])
