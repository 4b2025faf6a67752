"""A loss that is summed and not averaged, with an L1 penalty by hand and large gradients.

expect: nothing
half: fresh
net: regression
"""

import torch
from common import arguments, curve, loader
from torch import nn

args = arguments(width=48, lr=1e-4, samples=900)
x, y = curve(args.samples)
model = nn.Sequential(nn.Linear(6, args.width), nn.ReLU(), nn.Linear(args.width, 1))
opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
for epoch in range(8):
    for a, b in loader(x, y, batch=64):
        opt.zero_grad()
        error = nn.functional.mse_loss(model(a), b, reduction="sum")
        loss = error + 0.01 * sum(p.abs().sum() for p in model.parameters())
        loss.backward()
        opt.step()
    print(epoch, loss.item())
