"""A margin loss on labels of -1 and 1, one output, and it reaches zero.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments, blobs, loader
from torch import nn

args = arguments(width=32, lr=0.05, samples=700)
x, y = blobs(args.samples, classes=2)
y = 2.0 * y - 1
model = nn.Sequential(nn.Linear(10, args.width), nn.Tanh(), nn.Linear(args.width, 1))
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
for epoch in range(6):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = torch.clamp(1 - b * model(a)[:, 0], min=0).mean()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
