"""Metric learning with a triplet margin loss that goes to zero.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments, blobs
from torch import nn

args = arguments(width=48, lr=1e-3, steps=200, samples=600)
x, y = blobs(args.samples, classes=4, features=10)
model = nn.Sequential(nn.Linear(10, args.width), nn.ReLU(), nn.Linear(args.width, 8))
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
loss_fn = nn.TripletMarginLoss(margin=1.0)
groups = [x[y == k] for k in range(4)]
for step in range(args.steps):
    a, b = torch.randperm(4)[:2].tolist()
    pick = lambda k: groups[k][torch.randint(len(groups[k]), (32,))]
    loss = loss_fn(model(pick(a)), model(pick(a)), model(pick(b)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print(step, loss.item())
