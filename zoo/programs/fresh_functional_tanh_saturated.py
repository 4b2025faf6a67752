"""Tanh as a function, no modules for activations, and weights drawn with a spread of two.

expect: saturated-activation
or: bad-init-scale, vanishing-gradient
site: a
half: fresh
net: mlp
"""

import torch
from common import arguments, blobs, loader
from torch import nn

args = arguments(width=96, lr=0.003, samples=900)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Linear(20, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, width)
        self.out = nn.Linear(width, 5)
        for layer in (self.a, self.b, self.c):
            nn.init.normal_(layer.weight, std=2.0)

    def forward(self, x):
        x = torch.tanh(self.a(x))
        x = torch.tanh(self.b(x))
        return self.out(torch.tanh(self.c(x)))


x, y = blobs(args.samples, classes=5, features=20, spread=4.0)
model = Net(args.width)
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
for epoch in range(8):
    for a, b in loader(x, y, batch=32):
        loss = nn.functional.cross_entropy(model(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
