"""Weights of classes that leave one class alone.

expect: class-collapse
or: not-learning
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=12, lr=0.02, steps=200, samples=1000)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(args.width, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
weights = torch.full((10,), 0.01)
weights[7] = 10.0
criterion = nn.CrossEntropyLoss(weight=weights)

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
