"""Regression on columns of very different sizes (areas, years, prices), none of them scaled.

expect: input-not-normalized
or: learning-rate-too-high, exploding-gradient, dead-units, non-finite
half: fresh
net: regression
"""

import torch
from common import arguments, loader
from torch import nn

args = arguments(width=64, lr=1e-3, samples=800)
area = 50 + 150 * torch.rand(args.samples, 1)
year = 1950 + 70 * torch.rand(args.samples, 1)
rooms = torch.randint(1, 8, (args.samples, 1)).float()
x = torch.cat([area, year, rooms], 1)
y = area / 100 + rooms / 4 + 0.1 * torch.randn(args.samples, 1)
model = nn.Sequential(nn.Linear(3, args.width), nn.ReLU(), nn.Linear(args.width, 1))
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
mse = nn.MSELoss()
for epoch in range(6):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = mse(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
