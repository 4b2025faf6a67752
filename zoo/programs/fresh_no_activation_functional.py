"""The forward calls three linear layers in a row, on data that are not linearly separable.

expect: missing-activation
site: one
half: fresh
net: mlp
"""

import torch
from common import arguments, loader
from torch import nn

args = arguments(width=32, lr=0.01, samples=800)
angle = 6.28 * torch.rand(args.samples)
y = torch.randint(2, (args.samples,))
x = torch.stack([angle.cos(), angle.sin()], 1) * (1 + y[:, None]) + 0.1 * torch.randn(args.samples, 2)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one = nn.Linear(2, width)
        self.two = nn.Linear(width, width)
        self.three = nn.Linear(width, 2)

    def forward(self, x):
        x = self.one(x)
        x = self.two(x)
        return self.three(x)


model = Net(args.width)
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(6):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
