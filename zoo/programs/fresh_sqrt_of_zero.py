"""A distance loss by hand: the slope of the square root at zero is infinite.

expect: non-finite
half: fresh
net: mlp
"""

import torch
from common import arguments, blobs, loader
from torch import nn

args = arguments(width=32, lr=1e-3, samples=600)
x, y = blobs(args.samples, features=8)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, args.width), nn.ReLU(), nn.Linear(args.width, 4))

    def forward(self, x):
        return self.net(x)


model = Embedder()
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(4):
    for a, b in loader(x, y, batch=24):
        z = model(a)
        gap = z[:, None] - z[None]
        distance = (gap**2).sum(-1).sqrt()
        same = (b[:, None] == b[None]).float()
        loss = (same * distance + (1 - same) * torch.relu(1 - distance)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
