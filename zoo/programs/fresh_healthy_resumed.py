"""Training that goes on from a checkpoint: the loss is low from the start and hardly moves.

expect: nothing
half: fresh
net: regression
"""

import torch
from common import arguments, curve, loader
from torch import nn

args = arguments(width=48, lr=1e-3, samples=800)
x, y = curve(args.samples)


def build():
    return nn.Sequential(nn.Linear(6, args.width), nn.Tanh(), nn.Linear(args.width, 1))


model = build()
with torch.no_grad():  # what an earlier run has left: features, and the best weights for them
    features = torch.cat([torch.tanh(model[0](x)), torch.ones(len(x), 1)], 1)
    solved = torch.linalg.lstsq(features, y).solution[:, 0]
    model[2].weight.copy_(solved[None, :-1])
    model[2].bias.copy_(solved[-1:])
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(6):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = (model(a) - b).pow(2).mean()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
