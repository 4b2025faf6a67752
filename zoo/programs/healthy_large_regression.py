"""House prices: targets in the hundred thousands, a loss in the billions, and it learns.

expect: nothing
half: second
"""

import torch
from common import arguments, curve, loader
from torch import nn

args = arguments(width=64, lr=5e-3, samples=900)


class Prices(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return 200_000 + 60_000 * self.net(x)


x, y = curve(args.samples)
y = 200_000 + 60_000 * y
model = Prices(args.width)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.MSELoss()
for epoch in range(12):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
