"""Two epochs of ten batches: over before much can be said.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=48, lr=1e-3)
x, y, vx, vy = digits(320)
model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(args.width, 10))
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(2):
    model.train()
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        print(epoch, nn.functional.cross_entropy(model(vx), vy).item())
