"""SGD at 30.

expect: learning-rate-too-high
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=64, steps=200, samples=1000)
x, y, _, _ = digits(args.samples)

model = nn.Sequential(nn.Linear(64, args.width), nn.Tanh(), nn.Linear(args.width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=30.0)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
