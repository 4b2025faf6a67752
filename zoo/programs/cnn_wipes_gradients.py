"""`optimizer.zero_grad()` slipped between backward and step.

expect: gradient-wiped
half: first
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=16, lr=0.05, steps=120, samples=800)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(args.width, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    output = model(a)
    loss = criterion(output, b)
    loss.backward()
    model.zero_grad()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
