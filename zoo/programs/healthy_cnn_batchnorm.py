"""A convolutional network with batch norm and dropout, evaluated as it should be.

expect: nothing
half: first
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=16, lr=2e-3, samples=1000)
x, y, test_x, test_y = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.BatchNorm2d(args.width), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(args.width, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.3), nn.Linear(128, 10),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
for epoch in range(5):
    model.train()
    for a, b in loader(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum(F.cross_entropy(model(a), b).item() for a, b in loader(test_x, test_y, batch=100)))
