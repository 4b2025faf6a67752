"""A convolutional network with batch norm; after the first evaluation nobody calls train() again.

expect: eval-mode-training
onset: 20-45
site: 1
half: second
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=16, lr=0.05, samples=900)
x, y, test_x, test_y = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.BatchNorm2d(args.width), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(args.width, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.3), nn.Linear(128, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)


def evaluate():
    model.eval()
    with torch.no_grad():
        right = sum((model(a).argmax(1) == b).sum() for a, b in loader(test_x, test_y, batch=100))
    return right.item() / len(test_x)


model.train()
for epoch in range(5):
    for a, b in loader(x, y, batch=32):
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()
    print(epoch, evaluate())
