"""Fourteen convolutions with sigmoids between them.

expect: vanishing-gradient
site: conv.0
half: fresh
net: cnn
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=12, depth=14, lr=0.05, samples=600)


class Deep(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        sizes = [1, *[width] * depth]
        self.conv = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(sizes, sizes[1:]))
        self.head = nn.Linear(width * 64, 10)

    def forward(self, x):
        for conv in self.conv:
            x = torch.sigmoid(conv(x))
        return self.head(x.flatten(1))


x, y, _, _ = digits(args.samples, image=True)
model = Deep(args.width, args.depth)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(6):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
