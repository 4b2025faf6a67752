"""A network for a curved function has no activation between its layers.

expect: missing-activation
site: fc1
half: second
"""

import torch
from common import arguments, curve, loader
from torch import nn

args = arguments(width=64, lr=2e-3, samples=1200)


class Regressor(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1 = nn.Linear(6, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, 1)

    def forward(self, x):
        return self.fc3(self.fc2(self.fc1(x)))


net = Regressor(args.width)
x, y = curve(args.samples)
optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
criterion = nn.MSELoss()
for epoch in range(8):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(net(a), b)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
