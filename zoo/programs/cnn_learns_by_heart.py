"""Sixty images with some wrong labels, learnt by heart.

expect: overfitting
half: first
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=24, lr=2e-3)
x, y, test_x, test_y = digits(1000, image=True)
x, y = x[:60] + 0.8 * torch.randn(60, 1, 8, 8), y[:60].clone()
y[::4] = torch.randint(10, (15,))
test_x = test_x + 0.8 * torch.randn_like(test_x)
model = nn.Sequential(
    nn.Conv2d(1, args.width, 3, padding=1), nn.ReLU(), nn.Flatten(),
    nn.Linear(args.width * 64, 64), nn.ReLU(), nn.Linear(64, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(40):
    model.train()
    for a, b in loader(x, y, batch=15):
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        value = F.cross_entropy(model(test_x), test_y).item()
    if epoch % 8 == 0:
        print(epoch, value)
