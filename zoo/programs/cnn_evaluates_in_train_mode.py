"""A network with batch norm is validated in training mode.

expect: train-mode-evaluation
site: 1
half: first
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=16, lr=0.02, samples=900)
x, y, test_x, test_y = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.BatchNorm2d(args.width), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.25), nn.Linear(args.width * 16, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
for epoch in range(6):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()
    total = 0.0
    with torch.no_grad():
        for a, b in loader(test_x, test_y, batch=64, shuffle=False):
            total += F.cross_entropy(model(a), b).item()
    print("epoch", epoch, "validation", total)
