"""One positive in twenty; the loss starts near its best constant and falls below it.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments, loader
from torch import nn

args = arguments(width=32, lr=3e-3, samples=1600)
y = (torch.rand(args.samples) < 0.05).float()
x = torch.randn(args.samples, 10) + 2.0 * y[:, None] * torch.tensor([1.0] * 3 + [0.0] * 7)
model = nn.Sequential(nn.Linear(10, args.width), nn.ReLU(), nn.Linear(args.width, 1))
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(5):
    for a, b in loader(x, y, batch=32):
        opt.zero_grad()
        loss = criterion(model(a).squeeze(1), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
