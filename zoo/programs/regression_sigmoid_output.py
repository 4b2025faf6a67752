"""A regression to values well outside [0, 1] ends in a sigmoid.

expect: output-range
half: second
"""

import torch
from common import arguments, curve, loader
from torch import nn

args = arguments(width=48, lr=3e-3, samples=900)
x, y = curve(args.samples)
y = y * 3 + 5
net = nn.Sequential(
    nn.Linear(6, args.width), nn.ReLU(), nn.Linear(args.width, 1), nn.Sigmoid()
)
optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
criterion = nn.MSELoss()
for epoch in range(8):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(net(a), b)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
