"""A factorised layer: two linear layers in a row, on purpose.

expect: nothing
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=128, lr=2e-3, samples=1000)
x, y, _, _ = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.ReLU(),
    nn.Linear(args.width, 8, bias=False), nn.Linear(8, args.width), nn.ReLU(),
    nn.Linear(args.width, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
