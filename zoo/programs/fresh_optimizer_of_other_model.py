"""The model is built again after the optimizer was made (another seed was wanted).

expect: optimizer-misses-parameters
or: missing-step
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=48, lr=0.05, samples=800)


def build():
    return nn.Sequential(nn.Linear(64, args.width), nn.GELU(), nn.Linear(args.width, 10))


x, y, _, _ = digits(args.samples)
model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
torch.manual_seed(args.seed + 1)
model = build()
for epoch in range(4):
    for a, b in loader(x, y, batch=32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
