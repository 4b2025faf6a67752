"""Adam at 0.03 and wide layers: large steps, and it learns.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=128, lr=0.02, samples=900)
x, y, vx, vy = digits(args.samples)
model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(6):
    model.train()
    for a, b in loader(x, y, batch=64):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        print(epoch, nn.functional.cross_entropy(model(vx), vy).item())
