"""Four micro-batches a step, and the loss is not divided.

expect: unscaled-accumulation
half: first
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=16, lr=1e-3, samples=900)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(args.width, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
accumulate = 4
for epoch in range(5):
    for i, (a, b) in enumerate(loader(x, y, batch=16, drop_last=True)):
        loss = criterion(model(a), b)
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
