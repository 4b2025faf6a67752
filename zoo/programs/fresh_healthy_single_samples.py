"""One sample a step, plain SGD: a loss that jumps and falls.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments, blobs
from torch import nn

args = arguments(width=24, lr=0.02, steps=600, samples=400)
x, y = blobs(args.samples, classes=3, features=8)
model = nn.Sequential(nn.Linear(8, args.width), nn.ReLU(), nn.Linear(args.width, 3))
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
for step in range(args.steps):
    k = torch.randint(args.samples, (1,))
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x[k]), y[k])
    loss.backward()
    opt.step()
    if step % 100 == 0:
        print(step, loss.item())
