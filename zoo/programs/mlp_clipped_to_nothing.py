"""SGD with gradients clipped to 0.0005.

expect: clipping-too-tight
or: learning-rate-too-low
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, lr=0.1, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)

model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5e-4)
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
