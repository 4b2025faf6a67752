"""House prices: targets in the hundred thousands, a loss in the billions, and it learns.

expect: nothing
half: second
"""

import torch
from common import arguments, curve, loader
from torch import nn

args = arguments(width=64, samples=900)
x, y = curve(args.samples)
y = 200_000 + 60_000 * y
model = nn.Sequential(nn.Linear(6, args.width), nn.ReLU(), nn.Linear(args.width, 1))
with torch.no_grad():
    model[2].weight.mul_(60_000)
    model[2].bias.fill_(200_000)
optimizer = torch.optim.Adam([
    {"params": model[0].parameters(), "lr": 1e-3}, {"params": model[2].parameters(), "lr": 60.0},
])
criterion = nn.MSELoss()
for epoch in range(8):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
