"""Uncertainty by dropout: the model predicts in training mode without gradient, on purpose.

expect: nothing
half: second
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=96, lr=2e-3, samples=1000)
x, y, test_x, test_y = digits(args.samples)
model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(args.width, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for a, b in loader(x, y):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
with torch.no_grad():
    votes = torch.stack([model(test_x).softmax(-1) for _ in range(20)])
print("spread", votes.std(0).mean().item(), "right", (votes.mean(0).argmax(1) == test_y).float().mean().item())
