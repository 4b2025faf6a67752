"""model.eval() is never called; validation runs through batch norm in training mode.

expect: train-mode-evaluation
site: 1
half: fresh
net: mlp
"""

import torch
from common import arguments, digits, loader
from torch import nn

args = arguments(width=48, lr=0.01, samples=900)
x, y, vx, vy = digits(args.samples)
model = nn.Sequential(
    nn.Linear(64, args.width), nn.BatchNorm1d(args.width), nn.ReLU(), nn.Dropout(0.3),
    nn.Linear(args.width, 10),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()


def validate():
    total = correct = 0
    loss_sum = 0.0
    with torch.no_grad():
        for a, b in loader(vx, vy, batch=50, shuffle=False):
            out = model(a)
            loss_sum += criterion(out, b).item() * len(b)
            correct += (out.argmax(1) == b).sum().item()
            total += len(b)
    return loss_sum / total, correct / total


for epoch in range(5):
    model.train()
    for a, b in loader(x, y, batch=32):
        optimizer.zero_grad()
        criterion(model(a), b).backward()
        optimizer.step()
    print(epoch, *validate())
