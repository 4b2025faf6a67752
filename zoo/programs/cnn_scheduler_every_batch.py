"""A step schedule in epochs is stepped in every batch.

expect: scheduler-collapse
half: first
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=16, lr=0.02, samples=1000)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(args.width, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.1)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(epoch, loss.item())
