"""All but the last layer were frozen for a first phase, and never thawed for the second.

expect: no-gradient
or: not-learning, learning-rate-too-low
site: body
half: fresh
net: cnn
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=8, lr=1e-3, samples=700)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.head = nn.Linear(64, 64)
        self.body = nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 10))

    def forward(self, x):
        return self.body(torch.relu(self.head(x)))


x, y, _, _ = digits(args.samples)
model = Net(args.width)
for p in model.body.parameters():
    p.requires_grad = False
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(5):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
