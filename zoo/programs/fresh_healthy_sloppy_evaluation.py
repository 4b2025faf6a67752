"""model.eval() and model.train() at the right places, and no torch.no_grad() for the evaluation.

expect: nothing
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=48, lr=0.005, samples=600)
x, y, vx, vy = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.BatchNorm1d(args.width), nn.ReLU(), nn.Dropout(0.2),
    nn.Linear(args.width, 10),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(12):
    model.train()
    for a, b in loader(x, y, batch=32):
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
    model.eval()
    out = model(vx)
    print(epoch, loss.item(), criterion(out, vy).item(), (out.argmax(1) == vy).float().mean().item())
