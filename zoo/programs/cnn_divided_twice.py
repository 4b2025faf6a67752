"""Pixels are divided by 255 in the data set, and once more in the loop.

expect: input-collapsed
half: second
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=16, lr=1e-3, steps=150, samples=900)
x, y, _, _ = digits(args.samples, image=True, scale=False)
x = x / 255
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(args.width, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for step, (images, labels) in zip(range(args.steps), forever(loader(x, y))):
    images = images / 255.0
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
