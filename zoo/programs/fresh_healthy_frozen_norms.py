"""Batch norms are kept in eval mode while the layers around them are tuned.

expect: nothing
half: fresh
net: cnn
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=12, lr=0.01, samples=700)
x, y, vx, vy = digits(args.samples, image=True)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.BatchNorm2d(args.width), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(16 * args.width, 10),
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)


def freeze_norms():
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
            module.weight.requires_grad_(False)
            module.bias.requires_grad_(False)


for epoch in range(6):
    model.train()
    freeze_norms()
    for a, b in loader(x, y, batch=32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, loss.item(), nn.functional.cross_entropy(model(vx), vy).item())
