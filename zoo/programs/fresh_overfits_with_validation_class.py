"""Fifty examples, a wide network, a hundred epochs, a validation loss every second one.

expect: overfitting
half: fresh
net: mlp
"""

import torch
from common import arguments, blobs, loader
from torch import nn

args = arguments(width=256, lr=3e-3)
x, y = blobs(450, classes=4, features=20, spread=3.0)
x, vx, y, vy = x[:50], x[50:], y[:50], y[50:]
model = nn.Sequential(
    nn.Linear(20, args.width), nn.ReLU(), nn.Linear(args.width, args.width), nn.ReLU(),
    nn.Linear(args.width, 4),
)  # fmt: skip
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(60):
    model.train()
    for a, b in loader(x, y, batch=10):
        opt.zero_grad()
        loss = loss_fn(model(a), b)
        loss.backward()
        opt.step()
    if epoch % 2 == 0:
        model.eval()
        with torch.inference_mode():
            print(epoch, loss.item(), loss_fn(model(vx), vy).item())
