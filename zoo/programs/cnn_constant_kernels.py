"""All kernels start at the same value.

expect: symmetric-init
site: 0
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=16, lr=0.02, steps=150, samples=900)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(args.width, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(128, 10),
)
for p in model.parameters():
    nn.init.constant_(p, 0.05)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
