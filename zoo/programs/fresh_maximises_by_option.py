"""The optimizer was told to maximise.

expect: negative-loss
or: exploding-gradient, learning-rate-too-high
half: fresh
net: mlp
"""

import torch
from common import arguments, blobs, loader
from torch import nn

args = arguments(width=32, lr=0.01, samples=800)
x, y = blobs(args.samples)
model = nn.Sequential(nn.Linear(10, args.width), nn.ReLU(), nn.Linear(args.width, 4))
opt = torch.optim.SGD(model.parameters(), lr=args.lr, maximize=True)
for epoch in range(4):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
