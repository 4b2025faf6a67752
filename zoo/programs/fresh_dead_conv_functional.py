"""Biases of a layer start at minus twenty; rectifiers are functions, not modules.

expect: dead-units
site: hidden
half: fresh
net: mlp
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=64, lr=0.01, samples=800)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.hidden = nn.Linear(width, width)
        self.last = nn.Linear(width, 10)
        nn.init.constant_(self.hidden.bias, -20.0)

    def forward(self, x):
        return self.last(F.relu(self.hidden(F.relu(self.first(x)))))


x, y, _, _ = digits(args.samples)
model = Net(args.width)
opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
for epoch in range(6):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = F.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
