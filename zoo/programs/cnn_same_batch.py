"""The loader is restarted in every step and does not shuffle.

expect: repeated-batch
half: first
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=12, lr=1e-3, steps=100, samples=900)
x, y, _, _ = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(args.width, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
train = loader(x, y, shuffle=False)
for step in range(args.steps):
    for a, b in train:
        break
    optimizer.zero_grad()
    loss = criterion(model(a), b)
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(step, loss.item())
