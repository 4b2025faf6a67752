"""A handful of validation samples: their loss jumps up and down.

expect: nothing
half: first
"""

import torch
import torch.nn.functional as F
from common import arguments, digits, loader
from torch import nn

args = arguments(width=48, lr=1e-3, samples=1000)
x, y, test_x, test_y = digits(args.samples)
model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(args.width, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(10):
    model.train()
    for a, b in loader(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()
    model.eval()
    chosen = torch.randint(len(test_x), (24,))
    with torch.no_grad():
        print(epoch, F.cross_entropy(model(test_x[chosen]), test_y[chosen]).item())
