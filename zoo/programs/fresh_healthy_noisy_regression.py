"""A regression of which most is noise: the error falls by a third and no further.

expect: nothing
half: fresh
net: regression
"""

import torch
from common import arguments, curve, loader
from torch import nn

args = arguments(width=48, lr=3e-3, samples=1200)
x, y = curve(args.samples, noise=1.5)
model = nn.Sequential(nn.Linear(6, args.width), nn.ReLU(), nn.Linear(args.width, 1))
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(7):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
